/* SPDX-License-Identifier: MIT */
/*
 * Calls with vectors and messages, for 32 and for 64 bits: gcc -nostdlib -static, with -m32 or without. What is expected of each is
 * in test/cli/messages.py. Descriptor 999 is open nowhere: what such a call was given is read all the same.
 */
typedef unsigned long word;

struct vec {
	void *at;
	word len;
};

struct msg {
	void *name;
	int name_len;
	struct vec *vectors;
	word n_vectors;
	void *control;
	word control_len;
	int flags;
};

struct mmsg {
	struct msg msg;
	unsigned int len;
};

/* No header of 32 bits need be there. */
#ifdef __i386__
enum {
	NR_exit_group = 252,
	NR_write = 4,
	NR_getpid = 20,
	NR_readv = 145,
	NR_writev = 146,
	NR_pwritev = 334,
	NR_sendmmsg = 345,
	NR_socket = 359,
	NR_bind = 361,
	NR_getsockname = 367,
	NR_sendmsg = 370,
	NR_recvmsg = 372,
	NR_recvmmsg = 337,
	NR_recvmmsg_time64 = 417
};

static long call(long nr, long a, long b, long c, long d, long e)
{
	long ret;

	__asm__ volatile("int $0x80"
			 : "=a"(ret)
			 : "a"(nr), "b"(a), "c"(b), "d"(c), "S"(d), "D"(e)
			 : "memory");
	return ret;
}
#define START "_start:\n\tmovl %esp, %eax\n\tandl $-16, %esp\n\tcall begin\n"
#else
enum {
	NR_exit_group = 231,
	NR_write = 1,
	NR_getpid = 39,
	NR_readv = 19,
	NR_writev = 20,
	NR_pwritev = 296,
	NR_sendmmsg = 307,
	NR_socket = 41,
	NR_bind = 49,
	NR_getsockname = 51,
	NR_sendmsg = 46,
	NR_recvmsg = 47,
	NR_recvmmsg = 299,
	NR_recvmmsg_time64 = 299
};

static long call(long nr, long a, long b, long c, long d, long e)
{
	register long r10 __asm__("r10") = d, r8 __asm__("r8") = e;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
			 : "memory", "rcx", "r11");
	return ret;
}
#define START "_start:\n\tandq $-16, %rsp\n\tcall begin\n"
#endif

void *memset(void *at, int byte, word len);
void *memset(void *at, int byte, word len)
{
	for (word i = 0; i < len; i++)
		((volatile char *)at)[i] = (char)byte;
	return at;
}

static char text[600], got[40][12];
static unsigned char in4[16], in6[28], un[32];
static struct vec vectors[1100], one, bad_vector, pieces[3], parts[40][2];
static struct mmsg many[1100];

static void say(long value)
{
	char digits[16], *at = digits + 15;

	*at = '\n';
	do
		*--at = (char)('0' + value % 10);
	while (value /= 10);
	call(NR_write, 1, (long)at, digits + 16 - at, 0, 0);
}

/* Memory that nobody has touched cannot be read when a call is entered. */
static void fill(void)
{
	for (int i = 0; i < 600; i++)
		text[i] = (char)('a' + i % 26);
	in4[0] = 2;
	in4[3] = 53;
	in4[4] = 10;
	in4[7] = 7;
	in6[0] = 10;
	in6[2] = 0x12;
	in6[3] = 0x34;
	in6[23] = 1;
	memset(got, 1, sizeof(got));
	pieces[0] = (struct vec){text, 3};
	pieces[1] = (struct vec){text, 0};
	pieces[2] = (struct vec){text + 10, 5};
	one = (struct vec){text, 8};
	bad_vector = (struct vec){(void *)24, 8};
	for (int i = 0; i < 1100; i++) {
		vectors[i] = (struct vec){text + i % 500, 2};
		many[i].msg.name = in4;
		many[i].msg.name_len = 16;
		many[i].msg.vectors = &one;
		many[i].msg.n_vectors = 1;
	}
}

static void send(int n, int mark)
{
	call(NR_sendmmsg, 999, (long)many, n, mark, 0);
}

/* Each call says in its last argument which one it is. */
static void sent(void)
{
	many[0].msg.vectors = pieces;
	many[0].msg.n_vectors = 3;
	many[1].msg.name = in6;
	many[1].msg.name_len = 28;
	many[2].msg.name = 0;
	many[2].msg.name_len = 0;
	many[2].msg.vectors = 0;
	many[2].msg.n_vectors = 0;
	many[3].msg.vectors = vectors;
	many[3].msg.n_vectors = 10;
	send(4, 1);
	fill();
	send(1024, 2);
	send(1100, 3);
	many[3].msg.name = (void *)16;
	send(5, 4);
	fill();
	many[2].msg.vectors = (void *)32;
	send(3, 5);
	fill();
	many[0].msg.vectors = &bad_vector;
	send(2, 6);
	fill();
	many[1].msg.vectors = vectors;
	many[1].msg.n_vectors = 65;
	send(2, 7);
	fill();
	one.len = 500;
	send(200, 8);
	one.len = 8;
	call(NR_sendmmsg, 999, 40, 3, 9, 0);
	send(0, 10);
}

/* From a socket with a name to another one, and back. */
static void received(void)
{
	int from = (int)call(NR_socket, 1, 2, 0, 0, 0), to = (int)call(NR_socket, 1, 2, 0, 0, 0);
	int len = sizeof(un);

	un[0] = 1;
	call(NR_bind, from, (long)un, 2, 0, 0); /* the kernel chooses the names */
	call(NR_bind, to, (long)un, 2, 0, 0);
	call(NR_getsockname, to, (long)un, (long)&len, 0, 0);
	for (int i = 0; i < 40; i++) {
		vectors[i] = (struct vec){text + i, (word)(i % 5 + 1)};
		many[i].msg.name = un;
		many[i].msg.name_len = len;
		many[i].msg.vectors = &vectors[i];
		many[i].msg.n_vectors = 1;
	}
	/* A socket takes 11 until somebody reads them. */
	for (int i = 0; i < 10; i++)
		call(NR_sendmmsg, from, (long)&many[i], 1, 0, 0);
	memset(un, 0, sizeof(un));
	for (int i = 0; i < 40; i++) {
		parts[i][0] = (struct vec){got[i], 2};
		parts[i][1] = (struct vec){got[i] + 2, 10};
		many[i].msg.name_len = sizeof(un);
		many[i].msg.vectors = parts[i];
		many[i].msg.n_vectors = 2;
	}
	call(NR_recvmmsg_time64, to, (long)many, 2, 0x40, 0);
	call(NR_recvmmsg, to, (long)many, 3, 0x40, 0);
	call(NR_recvmsg, to, (long)&many[5].msg, 0x40, 0, 0);
	call(NR_readv, to, (long)parts[0], 2, 0, 0);
	call(NR_recvmmsg, to, (long)many, 40, 0x40, 0); /* what is left */
	call(NR_recvmmsg, to, (long)many, 40, 0x40, 0); /* nothing */
}

static void vectors_alone(void)
{
	fill();
	call(NR_writev, 999, (long)pieces, 3, 0, 0);
	call(NR_writev, 999, (long)vectors, 1024, 0, 0);
	call(NR_writev, 999, (long)vectors, 1030, 0, 0);
	call(NR_writev, 999, 8, 3, 0, 0);
	call(NR_pwritev, 999, (long)pieces, 1, 7, 9);
	many[0].msg.vectors = pieces;
	many[0].msg.n_vectors = 3;
	call(NR_sendmsg, 999, (long)&many[0].msg, 1, 0, 0);
	many[0].msg.name = 0;
	call(NR_sendmsg, 999, (long)&many[0].msg, 2, 0, 0);
	call(NR_sendmsg, 999, 8, 3, 0, 0);
}

void begin(void);
void begin(void)
{
	say(call(NR_getpid, 0, 0, 0, 0, 0));
	fill();
	sent();
	fill();
	received();
	vectors_alone();
	call(NR_exit_group, 0, 0, 0, 0, 0);
}

__asm__(".globl _start\n" START);
