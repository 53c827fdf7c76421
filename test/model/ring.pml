/* SPDX-License-Identifier: MIT */
/*
 * The ring's algorithm: two writers on one CPU, which preempt each other at any step, and a reader on
 * another CPU. test/cli/test_ring_model.py has spin check every interleaving.
 *
 * One position is one record, and one sub-buffer; the buffer has two. What is modelled:
 * - taking the time, looking at the head and its point, and each store of a sequence are steps between which
 *   the other writer may get the CPU; a sequence that lost it starts over, wherever it was;
 * - a writer may be killed at any step, for good: the other gets the CPU, and goes on;
 * - the two points, chosen by the parity; a sub-buffer is entered by storing the claim first;
 * - the reader: looks (head, point, head), copies a record, then asks for the claim.
 * Stores become visible in program order, as on x86-64; elsewhere the barriers see to it.
 *
 * The assertions say what must hold:
 * - what the reader accepts at a position is what was committed there;
 * - stamps never go back along positions; the point that belongs to a head is the stamp of the
 *   last record below it, so that nothing behind it is earlier.
 *
 * -DMISTAKE=n breaks the algorithm, and the check must fail:
 *   1: one point for both parities   2: the claim behind the data   3: the head is not compared
 *   4: the time is not compared with the last record's
 */
#ifndef MISTAKE
#define MISTAKE 0
#endif

#define RECORDS 2 /* of each writer */
#define TRIES	2 /* interrupted more often, a writer gives up: the loss is counted elsewhere */
#define SUBBUF	1
#define BUFFER	2

#if MISTAKE == 1
#define POINT(parity) 0
#else
#define POINT(parity) (parity)
#endif

/* Shared memory. The head is a pair here, and changes in one step. */
byte position, parity;
byte stamp[2];
byte claim;
byte data[BUFFER]; /* the record is its stamp */

/* For the assertions: the stamps that were committed, by position. */
byte truth[2 * RECORDS + 1];
byte now = 1;

byte cpu;	    /* the writer that has it */
bool interrupted[2]; /* since its sequence began */
bool ended[2];

/* One step of a writer: only with the CPU. A sequence that was interrupted is left. */
#define STEP(what)    atomic { cpu == _pid -> what }
#define INSIDE(what)  atomic { cpu == _pid -> if :: interrupted[_pid] -> goto again :: else -> what fi }

active [2] proctype writer()
{
	byte n, tries, seen, seen_parity, mine;

	do
	:: n == RECORDS || tries == TRIES -> break
	:: else ->
again:
		if
		:: tries == TRIES -> break
		:: else -> tries++
		fi;
		STEP(mine = now; now++);
		STEP(seen = position; seen_parity = parity);
#if MISTAKE != 4
		STEP(
			if
			:: mine < stamp[POINT(seen_parity)] -> mine = stamp[POINT(seen_parity)]
			:: else
			fi);
#endif
		STEP(interrupted[_pid] = false);
#if MISTAKE != 3
		INSIDE(if :: position != seen || parity != seen_parity -> goto again :: else fi);
#endif
		/* Each record stands for the switch to its sub-buffer, too. */
#if MISTAKE != 2
		if
		:: seen % SUBBUF == 0 && seen + SUBBUF > BUFFER ->
			INSIDE(claim = seen + SUBBUF - BUFFER)
		:: else
		fi;
#endif
		INSIDE(data[seen % BUFFER] = mine);
#if MISTAKE == 2
		if
		:: seen % SUBBUF == 0 && seen + SUBBUF > BUFFER ->
			INSIDE(claim = seen + SUBBUF - BUFFER)
		:: else
		fi;
#endif
		INSIDE(stamp[POINT(1 - seen_parity)] = mine);
		INSIDE(
			assert(seen == 0 || truth[seen - 1] <= mine);
			truth[seen] = mine;
			position = seen + 1;
			parity = 1 - seen_parity);
		n++;
		tries = 0
	od;
	atomic {
		ended[_pid] = true;
		if
		:: cpu == _pid && !ended[1 - _pid] -> cpu = 1 - _pid; interrupted[_pid] = true
		:: else
		fi
	}
}

/* Takes the CPU from a writer at any time; once, for good: that one was killed there. */
active proctype scheduler()
{
	byte n;

	do
	:: n < 3 -> atomic {
			!ended[1 - cpu] ->
			interrupted[cpu] = true;
			cpu = 1 - cpu;
			n++
		}
	:: atomic { !ended[1 - cpu] -> ended[cpu] = true; cpu = 1 - cpu }; break
	:: break
	od
}

active proctype reader()
{
	byte end, end_parity, point, again_position, at, copy;

	/* The look: head, point, head. */
	atomic { end = position; end_parity = parity };
	point = stamp[POINT(end_parity)];
	atomic { again_position = position };
	if
	:: again_position != end -> goto done
	:: else
	fi;
	assert(end == 0 || point == truth[end - 1]);
	/* The copy, oldest first, of a snapshot up to @end. */
	at = claim;
	do
	:: at >= end -> break
	:: else ->
		copy = data[at % BUFFER];
		if
		:: claim > at -> skip /* overwritten meanwhile: not taken */
		:: else -> assert(copy == truth[at])
		fi;
		at++
	od;
done:
	skip
}
