/* SPDX-License-Identifier: MIT */
#include "analysis/state/errno-name.h"

#include <string.h>

const char *ky_errno_name(int number)
{
	/* include/linux/errno.h of the kernel: how an interrupted call is to be restarted */
	switch (number) {
	case 512:
		return "ERESTARTSYS";
	case 513:
		return "ERESTARTNOINTR";
	case 514:
		return "ERESTARTNOHAND";
	case 515:
		return "ENOIOCTLCMD";
	case 516:
		return "ERESTART_RESTARTBLOCK";
	case 517:
		return "EPROBE_DEFER";
	case 530:
		return "EIOCBRETRY";
	}
	return number > 0 ? strerrorname_np(number) : NULL;
}
