/* SPDX-License-Identifier: MIT */
/* Virtual machines of KVM: which threads run guests' CPUs, and when they are in the guest. */
#include "analysis/state/model-internal.h"

static int model_kvm_tell(struct ky_feed *feed, const struct ky_event *event,
			  const struct ky_class_info *info, enum ky_vcpu_kind kind)
{
	struct ky_vcpu_seen seen = {
		.kind = kind,
		.host = feed->host,
		.thread = ky_feed_thread(feed, event, info),
		.vcpu_id = (uint32_t)ky_get_u64(event, &info->fields[KY_KVM_VCPU], UINT32_MAX),
		.vm = KY_UNKNOWN,
		.ns = event->ns,
	};

	if (!seen.thread || !feed->model->telling)
		return 0;
	return ky_model_notify(feed->model, vcpu, &seen);
}

int ky_on_kvm_entry(struct ky_feed *feed, const struct ky_event *event,
		    const struct ky_class_info *info)
{
	return model_kvm_tell(feed, event, info, KY_VCPU_ENTRY);
}

int ky_on_kvm_exit(struct ky_feed *feed, const struct ky_event *event,
		   const struct ky_class_info *info)
{
	return model_kvm_tell(feed, event, info, KY_VCPU_EXIT);
}

int ky_on_dump_vcpu(struct ky_feed *feed, const struct ky_event *event,
		    const struct ky_class_info *info)
{
	int32_t tid = (int32_t)ky_get_i64(event, &info->fields[KY_KVM_TID], 0);
	struct ky_vcpu_seen seen = {
		.kind = KY_VCPU_THERE,
		.host = feed->host,
		.vcpu_id = (uint32_t)ky_get_u64(event, &info->fields[KY_KVM_VCPU], 0),
		.vm = (int32_t)ky_get_i64(event, &info->fields[KY_KVM_VM], KY_UNKNOWN),
		.ns = event->ns,
	};

	if (tid <= 0) /* an older kernel does not tell */
		return 0;
	seen.thread = ky_model_thread_get(feed->model, feed->host, tid);
	if (!seen.thread)
		return KYMO_E_MEMORY;
	/* It was there before the range began, too. */
	return ky_model_notify(feed->model, vcpu, &seen);
}
