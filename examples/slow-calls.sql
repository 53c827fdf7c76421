-- title: Slow system calls
-- about: System calls that took longer than :least ns, and which programs make them.
-- param least=10000000
-- table calls: Calls, the slowest first
-- table programs: Slow calls of each program
-- column began timestamp: When the call began.
-- column took duration: How long the call took.
-- column name text: The system call.
-- column comm text: The program.
-- column calls count: How many calls were slow.
-- column total duration: The sum of their times.

SELECT time AS began, duration AS took, name, comm, error
FROM syscall
WHERE duration >= :least AND time BETWEEN :begin AND :end
ORDER BY duration DESC;

SELECT comm, count(*) AS calls, sum(duration) AS total
FROM syscall
WHERE duration >= :least AND time BETWEEN :begin AND :end
GROUP BY comm
ORDER BY total DESC;
