// Resources: the resource flags of a typed command (--cpus, --mem, ...), for its manifest.
#pragma once

#include "base/result.hpp"
#include "client/inputs/wishes.hpp"
#include "client/terminal/json.hpp"

#include <string>

namespace muster::cli {

// Each checks the value of a flag and, if it is valid, stores it. invalid: says what would be
// valid.
Status read_cpus(const std::string& text, ResourceWishes& into);
Status read_memory(const std::string& text, ResourceWishes& into);
Status read_gpus(const std::string& text, ResourceWishes& into);  // "2", "amd.com/gpu=2"
Status read_time(const std::string& text, ResourceWishes& into);  // "90m", "1:30:00", "2-12"
Status read_retry_memory(const std::string& text, ResourceWishes& into);  // "8Gi,16Gi"
Status read_retry_time(const std::string& text, ResourceWishes& into);    // "2h,8:00:00"
Status read_signal(const std::string& text, ResourceWishes& into);        // "USR1@2m"
Status read_grace(const std::string& text, ResourceWishes& into);         // "90s"
Status read_after(const std::string& text, ResourceWishes& into);         // "ok:prep,any:clean"
Status read_node_label(const std::string& text, ResourceWishes& into);    // "disk=ssd"
Status read_label(const std::string& text, ResourceWishes& into);         // "project=x"
Status read_ttl(const std::string& text, ResourceWishes& into);           // "7d"

Status check_scratch(const ResourceWishes& wishes);  // "10Gi", "true"
Status check_notice(const ResourceWishes& wishes);   // --mail, --notify, --notify-on
Status check_signal(const ResourceWishes& wishes);   // it needs --time
Status check_retries(const ResourceWishes& wishes);  // they need --mem and --time

// What this machine has for the pods of a run without a coordinator.
struct MachineRoom {
  int64_t cpus = 0;
  int64_t memory_bytes = 0;
};
// Whether so many of the job's pods fit here together. invalid: names the flag and what there is.
Status fits_here(const ResourceWishes& wishes, int64_t pods, const MachineRoom& room);

// Adds them to a manifest of one container.
Json with_resources(Json manifest, const ResourceWishes& wishes);
// The coordinator's error about such a manifest, which names the flags instead of its fields.
Error in_flags(Error error);
// The whole CPUs of --cpus, rounded up: how many threads a command should have. 0: it was not
// given.
int64_t threads_of(const ResourceWishes& wishes);

}  // namespace muster::cli
