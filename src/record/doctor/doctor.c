/* SPDX-License-Identifier: MIT */
#include "record/doctor/doctor.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/vec.h"

void ky_doctor_add(struct ky_doctor *doctor, const char *name, enum ky_check_status status,
		   const char *fmt, ...)
{
	struct ky_check check = {.name = name, .status = status};
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(check.text, sizeof(check.text), fmt, ap);
	va_end(ap);
	if (ky_vec_push(&doctor->checks, check) < 0)
		doctor->failed_memory = true;
}

void ky_doctor_advice(struct ky_doctor *doctor, const char *fmt, ...)
{
	struct ky_check *check;
	va_list ap;

	if (!doctor->checks.len)
		return;
	check = ky_vec_last(&doctor->checks);
	va_start(ap, fmt);
	vsnprintf(check->advice, sizeof(check->advice), fmt, ap);
	va_end(ap);
}
