/* SPDX-License-Identifier: MIT */
/*
 * The parts of the macros in kymo/trace.h. Programs include that header; nothing here is for their
 * use.
 *
 * A call site tests one byte and, out of line, calls the library. The asm statement that takes the
 * address of the site's description (struct kymo_site) also emits the description, into the section
 * kymo_events. So the description needs no relocation at the program's start, works in inline
 * functions and templates alike (a variable in a named section does not), and disappears with the
 * code when the compiler finds it dead. Its constants come from _Generic or templates. Its texts
 * are one string literal, which the library splits.
 *
 * The enable bytes of a module (an executable or shared library) are a page of its own, kymo_page.
 * The library maps a page of shared memory over it. A site uses one of the bytes, which
 * compile-time arithmetic selects. When two sites share a byte and only one of them is enabled, the
 * other costs a useless call, nothing else.
 */
#ifndef KYMO_TRACE_SITE_H
#define KYMO_TRACE_SITE_H

#include <stdint.h>

#ifdef __cplusplus
#include <type_traits>
#endif

#define KYMO_TRACE_API __attribute__((visibility("default")))
/* Calls of these functions avoid the procedure linkage table where the compiler supports it. */
#if defined(__has_attribute)
#if __has_attribute(noplt)
#define KYMO_TRACE_HIT KYMO_TRACE_API __attribute__((noplt))
#endif
#endif
#ifndef KYMO_TRACE_HIT
#define KYMO_TRACE_HIT KYMO_TRACE_API
#endif
/*
 * The version of the structs below, which are compiled into programs. docs/design/tracer.md
 * ("Versions") says when to raise it.
 */
#define KYMO_SITE_VERSION 1
#define KYMO_PAGE_BYTES	  4096

struct kymo_label {
	const char *name;
	int64_t first, last;
};

/* The layout is that of the asm below. An offset counts from the address of its own member. */
struct kymo_site_field {
	uint32_t type; /* KYMO_TYPE() */
	int32_t labels;
};

struct kymo_site {
	void *event;	/* for the library; NULL: not registered */
	void *straight; /* for the library; not NULL: a hit needs no further checks */
	int32_t text;	/* "provider, name, fields" as written, then the source file's name */
	uint32_t line;
	uint16_t enable_byte;
	uint8_t log_level;
	uint8_t kind;
	uint8_t n_fields;
	uint8_t n_values;
	uint16_t reserved;
	struct kymo_site_field fields[10];
	uint64_t reserved_end; /* keeps the fill count of the asm above 0 */
};

struct kymo_module {
	uint32_t version;
	uint32_t site_bytes;
	struct kymo_site *sites, *sites_end;
	unsigned char *page;
	void *module; /* for the library */
};

#ifdef __cplusplus
extern "C" {
#endif

extern unsigned char kymo_page[KYMO_PAGE_BYTES] __attribute__((visibility("hidden")));
extern struct kymo_site kymo_sites_start[] __asm__("__start_kymo_events")
	__attribute__((weak, visibility("hidden")));
extern struct kymo_site kymo_sites_stop[] __asm__("__stop_kymo_events")
	__attribute__((weak, visibility("hidden")));

/* Functions of the library. Call sites call them; programs must not. */
KYMO_TRACE_API void kymo_module_add(struct kymo_module *module);
KYMO_TRACE_API void kymo_module_remove(struct kymo_module *module);
KYMO_TRACE_HIT void kymo_hit(struct kymo_site *site, const uint64_t *values);
/* @on: the site's enable byte, as the site read it. */
KYMO_TRACE_HIT void kymo_hit_one(struct kymo_site *site, uint64_t value, unsigned int on);
/*
 * Records on behalf of the code at @ip: the context field ip and similar fields refer to that code.
 */
KYMO_TRACE_API void kymo_hit_from(struct kymo_site *site, const uint64_t *values, uintptr_t ip);
KYMO_TRACE_API unsigned int kymo_hit_begin(struct kymo_site *site, const uint64_t *values);
KYMO_TRACE_API void kymo_hit_end(struct kymo_site *site, unsigned int sessions);
KYMO_TRACE_API void kymo_hit_text(struct kymo_site *site, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
KYMO_TRACE_API int kymo_site_enabled(struct kymo_site *site);
/*
 * For libkymo-fd: the descriptor of the control file, or -1; and a function that moves it to
 * another number, while the old descriptor stays open.
 */
KYMO_TRACE_API int kymo_control_fd(void);
KYMO_TRACE_API void kymo_control_fd_move(void);

/* A call site of a tracker. */
struct kymo_latency_site {
	uint32_t number; /* for the library; 0: not registered */
};

KYMO_TRACE_HIT void kymo_latency_begin(struct kymo_latency_site *site, const char *tracker,
				       uint64_t key);
KYMO_TRACE_HIT void kymo_latency_end(struct kymo_latency_site *site, const char *tracker,
				     uint64_t key);

#define KYMO_LATENCY_(function, tracker, key)                             \
	do {                                                              \
		static struct kymo_latency_site kymo_latency_site_;       \
		function(&kymo_latency_site_, #tracker, (uint64_t)(key)); \
	} while (0)

#ifndef KYMO_TRACE_LIBRARY /* the library itself has no events */

/*
 * Each module has one of these, however many of its files include this header. The program writes
 * kymo_this_module at its start. As data it lies near the sites, which the program writes too;
 * after kymo_page it would need a page of its own.
 */
extern struct kymo_module kymo_this_module __attribute__((visibility("hidden")));
__asm__(".ifndef kymo_page\n"
	".pushsection .bss.kymo_page,\"awG\",%nobits,kymo_page,comdat\n"
	".weak kymo_page\n.hidden kymo_page\n.type kymo_page,%object\n.size kymo_page,4096\n"
	".balign 4096\nkymo_page: .skip 4096\n.popsection\n"
	".pushsection .data.kymo_this_module,\"awG\",%progbits,kymo_this_module,comdat\n"
	".weak kymo_this_module\n.hidden kymo_this_module\n.type kymo_this_module,%object\n"
	".size kymo_this_module,64\n"
	".balign 64\nkymo_this_module: .zero 64\n.popsection\n"
	".endif");

__attribute__((weak, visibility("hidden"), constructor(110))) void kymo_this_module_start(void);
__attribute__((weak, visibility("hidden"), constructor(110))) void kymo_this_module_start(void)
{
	if (kymo_this_module.version)
		return;
	kymo_this_module.version = KYMO_SITE_VERSION;
	kymo_this_module.site_bytes = sizeof(struct kymo_site);
	kymo_this_module.sites = kymo_sites_start;
	kymo_this_module.sites_end = kymo_sites_stop;
	kymo_this_module.page = kymo_page;
	kymo_module_add(&kymo_this_module);
}

__attribute__((weak, visibility("hidden"), destructor(110))) void kymo_this_module_stop(void);
__attribute__((weak, visibility("hidden"), destructor(110))) void kymo_this_module_stop(void)
{
	if (!kymo_this_module.version)
		return;
	kymo_this_module.version = 0;
	kymo_module_remove(&kymo_this_module);
}

#endif /* KYMO_TRACE_LIBRARY */

/* A span that has begun in some sessions (one bit per session). */
struct kymo_span {
	struct kymo_site *end;
	unsigned int sessions;
};

static inline void kymo_span_stop_(struct kymo_span *span)
{
	if (__builtin_expect(span->sessions, 0))
		kymo_hit_end(span->end, span->sessions);
}

#ifdef __cplusplus
}
#endif

#if defined(__x86_64__)
#define KYMO_ADDRESS_ "leaq 1f(%%rip), %[site]\n"
#define KYMO_SYMBOL_  "i"
#elif defined(__aarch64__)
#define KYMO_ADDRESS_ "adrp %[site], 1f\nadd %[site], %[site], :lo12:1f\n"
#define KYMO_SYMBOL_  "S"
#elif defined(__riscv)
#define KYMO_ADDRESS_ "lla %[site], 1f\n"
#define KYMO_SYMBOL_  "i"
#else
#error "kymo/trace.h: this processor is not known: add how it takes a local label's address"
#endif

/* ---- types: bits 0-3 kind, 4-7 bytes, 8-12 flags, 13-14 base, 16-31 array length ---------- */

/* The numbers are those of abi/control.h. */
#define KYMO_KIND_INTEGER     1u
#define KYMO_KIND_FLOAT	      2u
#define KYMO_KIND_BOOLEAN     3u
#define KYMO_KIND_STRING      4u
#define KYMO_KIND_ENUM	      5u
#define KYMO_KIND_ARRAY	      6u
#define KYMO_KIND_SEQUENCE    7u
#define KYMO_KIND_TEXT	      8u
#define KYMO_KIND_BLOB	      10u
#define KYMO_FLAG_SIGNED      (1u << 8)
#define KYMO_FLAG_NET	      (2u << 8)
#define KYMO_FLAG_FLOATS      (8u << 8)
#define KYMO_FLAG_FILTER_ONLY (16u << 8)
#define KYMO_BASE_HEX	      (1u << 13)
#define KYMO_BASE_OCT	      (2u << 13)
#define KYMO_BASE_BIN	      (3u << 13)
#define KYMO_BASE_ANY	      (3u << 13)

#define KYMO_MAKE_TYPE(kind, bytes, flags) ((kind) | ((uint32_t)(bytes) << 4) | (flags))
#define KYMO_TYPE_SIGNED(type)		   KYMO_MAKE_TYPE(KYMO_KIND_INTEGER, sizeof(type), KYMO_FLAG_SIGNED)
#define KYMO_TYPE_UNSIGNED(type)	   KYMO_MAKE_TYPE(KYMO_KIND_INTEGER, sizeof(type), 0u)
#define KYMO_TYPE_BOOL			   KYMO_MAKE_TYPE(KYMO_KIND_BOOLEAN, 1, 0u)
#define KYMO_TYPE_FLOAT			   KYMO_MAKE_TYPE(KYMO_KIND_FLOAT, 4, 0u)
#define KYMO_TYPE_DOUBLE		   KYMO_MAKE_TYPE(KYMO_KIND_FLOAT, 8, 0u)
#define KYMO_TYPE_STRING		   KYMO_MAKE_TYPE(KYMO_KIND_STRING, 1, 0u)
#define KYMO_TYPE_POINTER		   KYMO_MAKE_TYPE(KYMO_KIND_INTEGER, sizeof(void *), KYMO_BASE_HEX)

#define KYMO_IS_INTEGER(type) (((type)&15u) == KYMO_KIND_INTEGER)
#define KYMO_IS_NUMBER(type) \
	((((type)&15u) >= KYMO_KIND_INTEGER) && (((type)&15u) <= KYMO_KIND_BOOLEAN))
/* An integer's type with other flags; 0 (no type) for anything else. */
#define KYMO_WITH(type, flags) (KYMO_IS_INTEGER(type) ? ((type) & ~KYMO_BASE_ANY) | (flags) : 0u)
#define KYMO_AS_ENUM(type) \
	(KYMO_IS_INTEGER(type) ? ((type) & ~(15u | KYMO_BASE_ANY)) | KYMO_KIND_ENUM : 0u)
#define KYMO_FILTERED(type) ((type) ? (type) | KYMO_FLAG_FILTER_ONLY : 0u)
#define KYMO_OF_ELEMENTS(kind, type, base, length)                                         \
	(!KYMO_IS_NUMBER(type) || (length) > 65535u                                        \
		 ? 0u                                                                      \
		 : (kind) | ((type)&0x1f0u) |                                              \
			   (((type)&15u) == KYMO_KIND_FLOAT ? KYMO_FLAG_FLOATS : (base)) | \
			   ((uint32_t)(length) << 16))

/* ---- an expression's type and its value as 64 bits ------------------------------------------ */

static inline uint64_t kymo_float_bits(float value)
{
	union {
		float number;
		uint32_t bits;
	} u;

	u.number = value;
	return u.bits;
}

static inline uint64_t kymo_double_bits(double value)
{
	union {
		double number;
		uint64_t bits;
	} u;

	u.number = value;
	return u.bits;
}

#ifndef __cplusplus

#define KYMO_ASSERT_ _Static_assert

#define KYMO_TYPE_PLAIN(x) \
	_Generic((x),                                                                              \
		_Bool: KYMO_TYPE_BOOL,                                                             \
		char: KYMO_MAKE_TYPE(KYMO_KIND_INTEGER, 1, (char)-1 < 0 ? KYMO_FLAG_SIGNED : 0u),  \
		signed char: KYMO_TYPE_SIGNED(signed char),                                        \
		unsigned char: KYMO_TYPE_UNSIGNED(unsigned char),                                  \
		short: KYMO_TYPE_SIGNED(short),                                                    \
		unsigned short: KYMO_TYPE_UNSIGNED(unsigned short),                                \
		int: KYMO_TYPE_SIGNED(int),                                                        \
		unsigned int: KYMO_TYPE_UNSIGNED(unsigned int),                                    \
		long: KYMO_TYPE_SIGNED(long),                                                      \
		unsigned long: KYMO_TYPE_UNSIGNED(unsigned long),                                  \
		long long: KYMO_TYPE_SIGNED(long long),                                            \
		unsigned long long: KYMO_TYPE_UNSIGNED(unsigned long long),                        \
		float: KYMO_TYPE_FLOAT,                                                            \
		double: KYMO_TYPE_DOUBLE,                                                          \
		long double: KYMO_TYPE_DOUBLE,                                                     \
		char *: KYMO_TYPE_STRING,                                                          \
		const char *: KYMO_TYPE_STRING,                                                    \
		default: (__builtin_classify_type(x) == 5 ? KYMO_TYPE_POINTER : 0u))

static inline uint64_t kymo_signed_bits(long long value)
{
	return (uint64_t)value;
}

static inline uint64_t kymo_unsigned_bits(unsigned long long value)
{
	return value;
}

static inline uint64_t kymo_pointer_bits(const volatile void *value)
{
	return (uint64_t)(uintptr_t)value;
}

static inline uint64_t kymo_long_double_bits(long double value)
{
	return kymo_double_bits((double)value);
}

#define KYMO_VALUE_PLAIN(x)                             \
	_Generic((x), _Bool                             \
		 : kymo_unsigned_bits, char             \
		 : kymo_signed_bits, signed char        \
		 : kymo_signed_bits, unsigned char      \
		 : kymo_unsigned_bits, short            \
		 : kymo_signed_bits, unsigned short     \
		 : kymo_unsigned_bits, int              \
		 : kymo_signed_bits, unsigned int       \
		 : kymo_unsigned_bits, long             \
		 : kymo_signed_bits, unsigned long      \
		 : kymo_unsigned_bits, long long        \
		 : kymo_signed_bits, unsigned long long \
		 : kymo_unsigned_bits, float            \
		 : kymo_float_bits, double              \
		 : kymo_double_bits, long double        \
		 : kymo_long_double_bits, default       \
		 : kymo_pointer_bits)(x)
#define KYMO_POINTER(x) kymo_pointer_bits(x)

static inline __attribute__((always_inline)) void kymo_send(struct kymo_site *site, unsigned int on,
							    int n_values, const uint64_t *values)
{
	if (n_values == 1)
		kymo_hit_one(site, values[0], on);
	else
		kymo_hit(site, values);
}

#else

#define KYMO_ASSERT_ static_assert

template <class T> struct kymo_has_c_str {
	template <class U> static char test(decltype(static_cast<const U *>(nullptr)->c_str()) *);
	template <class U> static long test(...);
	static const bool value = sizeof(test<T>(nullptr)) == 1;
};

template <class T, bool is_enum = std::is_enum<T>::value> struct kymo_plain {
	typedef T type;
};
template <class T> struct kymo_plain<T, true> {
	typedef typename std::underlying_type<T>::type type;
};

template <class Any> struct kymo_type_of {
	typedef typename kymo_plain<typename std::decay<Any>::type>::type T;
	typedef typename std::remove_cv<typename std::remove_pointer<T>::type>::type target;
	static const uint32_t value =
		std::is_same<T, bool>::value ? KYMO_TYPE_BOOL
		: std::is_integral<T>::value && sizeof(T) <= 8
			? KYMO_MAKE_TYPE(KYMO_KIND_INTEGER, sizeof(T),
					 std::is_signed<T>::value ? KYMO_FLAG_SIGNED : 0u)
		: std::is_same<T, float>::value	   ? KYMO_TYPE_FLOAT
		: std::is_floating_point<T>::value ? KYMO_TYPE_DOUBLE
		: std::is_pointer<T>::value
			? (std::is_same<target, char>::value ? KYMO_TYPE_STRING : KYMO_TYPE_POINTER)
		: kymo_has_c_str<T>::value ? KYMO_TYPE_STRING
					   : 0u;
};

template <class T>
inline typename std::enable_if<std::is_integral<T>::value || std::is_enum<T>::value, uint64_t>::type
kymo_bits(T value)
{
	return static_cast<uint64_t>(value);
}
inline uint64_t kymo_bits(float value)
{
	return kymo_float_bits(value);
}
inline uint64_t kymo_bits(double value)
{
	return kymo_double_bits(value);
}
inline uint64_t kymo_bits(long double value)
{
	return kymo_double_bits(static_cast<double>(value));
}
inline uint64_t kymo_bits(const volatile void *value)
{
	return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(value));
}
template <class T>
inline typename std::enable_if<kymo_has_c_str<T>::value, uint64_t>::type kymo_bits(const T &value)
{
	return kymo_bits(static_cast<const volatile void *>(value.c_str()));
}

/* The values live until the end of the whole expression, including temporary strings. */
template <class... T> inline void kymo_send(struct kymo_site *site, unsigned int, T... values)
{
	const uint64_t list[] = {values...};
	kymo_hit(site, list);
}
inline void kymo_send(struct kymo_site *site, unsigned int on, uint64_t value)
{
	kymo_hit_one(site, value, on);
}
inline void kymo_send(struct kymo_site *site, unsigned int)
{
	kymo_hit(site, nullptr);
}
template <class... T> inline unsigned int kymo_send_begin(struct kymo_site *site, T... values)
{
	const uint64_t list[] = {values..., 0};
	return kymo_hit_begin(site, list);
}

#define KYMO_TYPE_PLAIN(x)  (kymo_type_of<decltype(x)>::value)
#define KYMO_VALUE_PLAIN(x) kymo_bits(x)
#define KYMO_POINTER(x)	    kymo_bits(static_cast<const volatile void *>(x))

#endif

/* ---- a field: a plain expression, or (kymo_form, "name", type, labels, n_values, values...) ------- */

#define KYMO_FORM_(x, type, labels, n, ...) (kymo_form, #x, type, labels, n, __VA_ARGS__)
#define KYMO_FORM_INTEGER_(x, flags) \
	KYMO_FORM_(x, KYMO_WITH(KYMO_TYPE_PLAIN(x), flags), kymo_page, 1, KYMO_VALUE_PLAIN(x))
#define KYMO_FORM_ARRAY_(a, base, n)                                                       \
	KYMO_FORM_(a, KYMO_OF_ELEMENTS(KYMO_KIND_ARRAY, KYMO_TYPE_PLAIN((a)[0]), base, n), \
		   kymo_page, 1, KYMO_POINTER(a))
#define KYMO_FORM_SEQUENCE_(p, base, n)                                                       \
	KYMO_FORM_(p, KYMO_OF_ELEMENTS(KYMO_KIND_SEQUENCE, KYMO_TYPE_PLAIN((p)[0]), base, 0), \
		   kymo_page, 2, KYMO_POINTER(p), (uint64_t)(n))
#define KYMO_FORM_BYTES_(p, kind, n) \
	KYMO_FORM_(p, KYMO_MAKE_TYPE(kind, 1, 0u), kymo_page, 2, KYMO_POINTER(p), (uint64_t)(n))

/*
 * Tells a form from a plain expression. KYMO_PEEK_ before a form is a call with many arguments and
 * becomes "~, FORM". Before anything else, the second item is the one that stands after it.
 */
#define KYMO_PASTE_(a, b)			  KYMO_PASTE2_(a, b)
#define KYMO_PASTE2_(a, b)			  a##b
#define KYMO_SECOND_(...)			  KYMO_SECOND2_(__VA_ARGS__)
#define KYMO_SECOND2_(a, b, ...)		  b
#define KYMO_PEEK_(...)				  KYMO_EIGHTH_(__VA_ARGS__, KYMO_IS_FORM_, KYMO_IS_FORM_, , , , , , ~)
#define KYMO_EIGHTH_(a, b, c, d, e, f, g, h, ...) h
#define KYMO_IS_FORM_				  ~, FORM
#define KYMO_KIND_(x)				  KYMO_SECOND_(KYMO_PEEK_ x, PLAIN, ~)

#define KYMO_TYPE_FORM(form, name, type, labels, n, ...)   type
#define KYMO_LABELS_FORM(form, name, type, labels, n, ...) labels
#define KYMO_COUNT_FORM(form, name, type, labels, n, ...)  n
#define KYMO_VALUE_FORM(form, name, type, labels, n, ...)  __VA_ARGS__
#define KYMO_GET_PLAIN(what, x)				   KYMO_PASTE_(what, PLAIN)(x)
#define KYMO_GET_FORM(what, x)				   KYMO_PASTE_(what, FORM) x
#define KYMO_GET_(what, x)				   KYMO_PASTE_(KYMO_GET_, KYMO_KIND_(x))(what, x)
#define KYMO_LABELS_PLAIN(x)				   kymo_page
#define KYMO_COUNT_PLAIN(x)				   1

/* ---- every field of an event: KYMO_EACH_(M, provider, name, fields...) is M(i, field)... ------- */

#define KYMO_EACH_(M, ...) KYMO_PASTE_(KYMO_EACH_, KYMO_N_(__VA_ARGS__))(M, __VA_ARGS__)
/* The number of arguments, from 1 to 12; else MANY (up to 40). */
#define KYMO_N_(...)                                                                            \
	KYMO_N2_(__VA_ARGS__, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, \
		 MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY,  \
		 MANY, MANY, MANY, MANY, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, ~)
#define KYMO_N2_(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, \
		 a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, a34,  \
		 a35, a36, a37, a38, a39, a40, n, ...)                                            \
	n
#define KYMO_EACH_MANY(M, ...)
#define KYMO_EACH_1(M, p)
#define KYMO_EACH_2(M, p, n)
#define KYMO_EACH_3(M, p, n, a)			  M(0, a)
#define KYMO_EACH_4(M, p, n, a, b)		  M(0, a) M(1, b)
#define KYMO_EACH_5(M, p, n, a, b, c)		  M(0, a) M(1, b) M(2, c)
#define KYMO_EACH_6(M, p, n, a, b, c, d)	  M(0, a) M(1, b) M(2, c) M(3, d)
#define KYMO_EACH_7(M, p, n, a, b, c, d, e)	  M(0, a) M(1, b) M(2, c) M(3, d) M(4, e)
#define KYMO_EACH_8(M, p, n, a, b, c, d, e, f)	  KYMO_EACH_7(M, p, n, a, b, c, d, e) M(5, f)
#define KYMO_EACH_9(M, p, n, a, b, c, d, e, f, g) KYMO_EACH_8(M, p, n, a, b, c, d, e, f) M(6, g)
#define KYMO_EACH_10(M, p, n, a, b, c, d, e, f, g, h) \
	KYMO_EACH_9(M, p, n, a, b, c, d, e, f, g) M(7, h)
#define KYMO_EACH_11(M, p, n, a, b, c, d, e, f, g, h, i) \
	KYMO_EACH_10(M, p, n, a, b, c, d, e, f, g, h) M(8, i)
#define KYMO_EACH_12(M, p, n, a, b, c, d, e, f, g, h, i, j) \
	KYMO_EACH_11(M, p, n, a, b, c, d, e, f, g, h, i) M(9, j)

#define KYMO_FIELDS_MANY  0
#define KYMO_FIELDS_1	  0
#define KYMO_FIELDS_2	  0
#define KYMO_FIELDS_3	  1
#define KYMO_FIELDS_4	  2
#define KYMO_FIELDS_5	  3
#define KYMO_FIELDS_6	  4
#define KYMO_FIELDS_7	  5
#define KYMO_FIELDS_8	  6
#define KYMO_FIELDS_9	  7
#define KYMO_FIELDS_10	  8
#define KYMO_FIELDS_11	  9
#define KYMO_FIELDS_12	  10
#define KYMO_FIELDS_(...) KYMO_PASTE_(KYMO_FIELDS_, KYMO_N_(__VA_ARGS__))

/* ---- mistakes ----------------------------------------------------------------------------- */

#define KYMO_CHECK_(...)                               \
	KYMO_PASTE_(KYMO_CHECK_, KYMO_N_(__VA_ARGS__)) \
	(__VA_ARGS__) KYMO_EACH_(KYMO_CHECK_FIELD_, __VA_ARGS__)
#define KYMO_CHECK_FIELD_(i, x)                                                                   \
	KYMO_ASSERT_(KYMO_GET_(KYMO_TYPE_, x) != 0u,                                              \
		     "kymo: this field has a type that cannot be recorded: fields are integers, " \
		     "bool, enumerations, floating point, strings, pointers, or KYMO_ARRAY() "    \
		     "and the like of numbers (see kymo/trace.h)");
#define KYMO_CHECK_MANY(...) KYMO_ASSERT_(0, "kymo: an event has at most 10 fields");
#define KYMO_CHECK_1(p)                                              \
	KYMO_ASSERT_(0, "kymo: an event has a provider and a name: " \
			"KYMO_EVENT(shop, order_placed, fields...)");
#ifdef __cplusplus
#define KYMO_CHECK_FIRST_(word) \
	static_assert((#word)[0] > '9', "kymo: a name begins with a letter or underscore: " #word);
#else
#define KYMO_CHECK_FIRST_(word)
#endif
/* A name that is not a plain word becomes a syntax error that shows the name. */
#define KYMO_CHECK_NAMES_(p, n, ...)                                        \
	KYMO_CHECK_FIRST_(p)                                                \
	KYMO_CHECK_FIRST_(n)                                                \
	enum {                                                              \
		p##_is_no_provider_name_use_letters_digits_and_underscores, \
		n##_is_no_event_name_use_letters_digits_and_underscores     \
	};
#define KYMO_CHECK_2(...)  KYMO_CHECK_NAMES_(__VA_ARGS__, ~)
#define KYMO_CHECK_3(...)  KYMO_CHECK_NAMES_(__VA_ARGS__)
#define KYMO_CHECK_4(...)  KYMO_CHECK_NAMES_(__VA_ARGS__)
#define KYMO_CHECK_5(...)  KYMO_CHECK_NAMES_(__VA_ARGS__)
#define KYMO_CHECK_6(...)  KYMO_CHECK_NAMES_(__VA_ARGS__)
#define KYMO_CHECK_7(...)  KYMO_CHECK_NAMES_(__VA_ARGS__)
#define KYMO_CHECK_8(...)  KYMO_CHECK_NAMES_(__VA_ARGS__)
#define KYMO_CHECK_9(...)  KYMO_CHECK_NAMES_(__VA_ARGS__)
#define KYMO_CHECK_10(...) KYMO_CHECK_NAMES_(__VA_ARGS__)
#define KYMO_CHECK_11(...) KYMO_CHECK_NAMES_(__VA_ARGS__)
#define KYMO_CHECK_12(...) KYMO_CHECK_NAMES_(__VA_ARGS__)

/* ---- the site ------------------------------------------------------------------------------ */

/* The byte comes from numbers of the preprocessor, so that most sites have a byte of their own. */
#define KYMO_BYTE_(text)                                                                \
	((__COUNTER__ + __LINE__ * 89 + sizeof(__FILE__) * 1031 + sizeof(text) * 331) % \
	 KYMO_PAGE_BYTES)

/* Relaxed: a site may see a change of its enable byte with a delay. */
#define KYMO_ON_(byte)	  __atomic_load_n(&kymo_page[byte], __ATOMIC_RELAXED)
#define KYMO_IS_ON_(byte) __builtin_expect(KYMO_ON_(byte), 0)

#define KYMO_ASM_FIELD_(i, x) ".long %c[t" #i "]\n.long %c[l" #i "] - .\n"
#define KYMO_ASM_OPERAND_(i, x) \
	, [t##i] "i"(KYMO_GET_(KYMO_TYPE_, x)), [l##i] KYMO_SYMBOL_(KYMO_GET_(KYMO_LABELS_, x))
#define KYMO_ADD_COUNT_(i, x) +KYMO_GET_(KYMO_COUNT_, x)

/* The numbers are those of abi/control.h. */
#define KYMO_SITE_PLAIN	     0
#define KYMO_SITE_SPAN_BEGIN 1
#define KYMO_SITE_SPAN_END   2
#define KYMO_SITE_COUNTER    3
#define KYMO_SITE_TEXT	     4
#define KYMO_SITE_QUERY	     6

/* Emits a struct kymo_site, and sets @site to its address. */
#define KYMO_SITE_(site_, byte_, level_, kind_, text_, ...)                                      \
	__asm__ __inline__ __volatile__(                                                         \
		KYMO_ADDRESS_                                                                    \
		".pushsection kymo_events,\"aw\"\n.balign 8\n"                                   \
		"1: .quad 0, 0\n.long %c[text] - .\n.long %c[line]\n"                            \
		".short %c[byte]\n.byte %c[level]\n.byte %c[kind]\n"                             \
		".byte %c[fields]\n.byte %c[values]\n.short 0\n" KYMO_EACH_(                     \
			KYMO_ASM_FIELD_, __VA_ARGS__) ".zero 8 * (11 - %c[fields])\n.popsection" \
		: [site] "=r"(site_)                                                             \
		: [text] KYMO_SYMBOL_(text_ "\0" __FILE__), [line] "i"(__LINE__),                \
		  [byte] "i"(byte_), [level] "i"(level_), [kind] "i"(KYMO_SITE_##kind_),         \
		  [fields] "i"(KYMO_FIELDS_(__VA_ARGS__)),                                       \
		  [values] "i"(0 KYMO_EACH_(KYMO_ADD_COUNT_, __VA_ARGS__))KYMO_EACH_(            \
			  KYMO_ASM_OPERAND_, __VA_ARGS__))

#ifdef __cplusplus
#define KYMO_VALUE_(i, x)	    , KYMO_GET_(KYMO_VALUE_, x)
#define KYMO_SEND_(site, on, ...)   kymo_send(site, on KYMO_EACH_(KYMO_VALUE_, __VA_ARGS__))
#define KYMO_SEND_BEGIN_(site, ...) kymo_send_begin(site KYMO_EACH_(KYMO_VALUE_, __VA_ARGS__))
#else
#define KYMO_VALUE_(i, x) KYMO_GET_(KYMO_VALUE_, x),
#define KYMO_VALUES_(...) ((const uint64_t[]){KYMO_EACH_(KYMO_VALUE_, __VA_ARGS__) 0})
#define KYMO_SEND_(site, on, ...) \
	kymo_send(site, on, 0 KYMO_EACH_(KYMO_ADD_COUNT_, __VA_ARGS__), KYMO_VALUES_(__VA_ARGS__))
#define KYMO_SEND_BEGIN_(site, ...) kymo_hit_begin(site, KYMO_VALUES_(__VA_ARGS__))
#endif

/*
 * The asm statement keeps the event's call from becoming the function's last jump (a tail call).
 * The library takes the return address of the call as the event's place.
 */
#define KYMO_STAY_() __asm__ volatile("")

#define KYMO_EVENT_(level, kind, text, ...)                                                 \
	do {                                                                                \
		KYMO_CHECK_(__VA_ARGS__)                                                    \
		enum { kymo_byte_ = KYMO_BYTE_(text) };                                     \
		const unsigned int kymo_on_ = KYMO_ON_(kymo_byte_);                         \
		if (__builtin_expect(kymo_on_, 0)) {                                        \
			struct kymo_site *kymo_site_;                                       \
			KYMO_SITE_(kymo_site_, kymo_byte_, level, kind, text, __VA_ARGS__); \
			KYMO_SEND_(kymo_site_, kymo_on_, __VA_ARGS__);                      \
			KYMO_STAY_();                                                       \
		}                                                                           \
	} while (0)

#define KYMO_COUNTER_(text, ...)                                                             \
	do {                                                                                 \
		KYMO_ASSERT_(KYMO_FIELDS_(__VA_ARGS__) == 1,                                 \
			     "kymo: a counter has one value: KYMO_COUNTER(shop, queue, n)"); \
		KYMO_EVENT_(KYMO_DEBUG_LINE, COUNTER, text, __VA_ARGS__);                    \
	} while (0)

#define KYMO_HEAD_(p, n, ...) p, n
#define KYMO_SPAN_(level, text, ...)                                                             \
	struct kymo_span KYMO_PASTE_(kymo_span_, __LINE__)                                       \
		__attribute__((cleanup(kymo_span_stop_), unused)) = __extension__({              \
			KYMO_CHECK_(__VA_ARGS__)                                                 \
			enum { kymo_byte_ = KYMO_BYTE_(text) };                                  \
			struct kymo_span kymo_span_ = {0, 0};                                    \
			if (KYMO_IS_ON_(kymo_byte_)) {                                           \
				struct kymo_site *kymo_site_;                                    \
				KYMO_SITE_(kymo_span_.end, kymo_byte_, level, SPAN_END, text,    \
					   KYMO_HEAD_(__VA_ARGS__, ~));                          \
				KYMO_SITE_(kymo_site_, kymo_byte_, level, SPAN_BEGIN, text,      \
					   __VA_ARGS__);                                         \
				kymo_span_.sessions = KYMO_SEND_BEGIN_(kymo_site_, __VA_ARGS__); \
			}                                                                        \
			kymo_span_;                                                              \
		})

#define KYMO_LOG_(level, ...)                                                                      \
	do {                                                                                       \
		enum { kymo_byte_ = KYMO_BYTE_("") };                                              \
		if (KYMO_IS_ON_(kymo_byte_)) {                                                     \
			struct kymo_site *kymo_site_;                                              \
			KYMO_SITE_(kymo_site_, kymo_byte_, level, TEXT, "kymo, printf, msg", kymo, \
				   printf, "");                                                    \
			kymo_hit_text(kymo_site_, __VA_ARGS__);                                    \
			KYMO_STAY_();                                                              \
		}                                                                                  \
	} while (0)

#define KYMO_ENABLED_(p, n)                                                             \
	__extension__({                                                                 \
		KYMO_CHECK_NAMES_(p, n, ~)                                              \
		enum { kymo_byte_ = KYMO_BYTE_(#p #n) };                                \
		int kymo_on_ = 0;                                                       \
		if (KYMO_IS_ON_(kymo_byte_)) {                                          \
			struct kymo_site *kymo_site_;                                   \
			KYMO_SITE_(kymo_site_, kymo_byte_, 0, QUERY, #p ", " #n, p, n); \
			kymo_on_ = kymo_site_enabled(kymo_site_);                       \
		}                                                                       \
		kymo_on_;                                                               \
	})

#endif
