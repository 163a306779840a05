// muster suspend, resume, scale, cordon, uncordon: one merge patch each. Repeating a change is not
// an error.
#include "cli/verbs/verbs.hpp"
#include "client/connect/discovery.hpp"
#include "client/connect/objects.hpp"
#include "client/terminal/exit_codes.hpp"

#include <iostream>

namespace muster::cli {
namespace {

using What = ChangeOptions::What;

// A Job is scaled by its parallelism; --completions also sets the parallelism, so that all indexes
// still run at once.
Json scale_patch(const ChangeOptions& options) {
  Json spec;
  if (options.completions) {
    spec["completions"] = *options.completions;
    spec["parallelism"] = *options.completions;
  }
  if (options.parallelism) spec["parallelism"] = *options.parallelism;
  return {{"spec", spec}};
}

Json patch_of(const ChangeOptions& options) {
  switch (options.what) {
    case What::suspend:
      return {{"spec", {{"suspend", true}}}};
    case What::resume:
      return {{"spec", {{"suspend", false}}}};
    case What::scale:
      return scale_patch(options);
    case What::cordon:
      return {{"spec", {{"unschedulable", true}}}};
    case What::uncordon:
      return {{"spec", {{"unschedulable", nullptr}}}};
  }
  return {};
}

const char* done_word(What what) {
  switch (what) {
    case What::suspend:
      return "suspended: its pods are terminated and not counted";
    case What::resume:
      return "resumed";
    case What::scale:
      return "scaled";
    case What::cordon:
      return "cordoned: it gets no new pods";
    case What::uncordon:
      return "uncordoned";
  }
  return "";
}

}  // namespace

int execute(const ChangeOptions& options) {
  const auto client = connect(options.target);
  const bool node = options.what == What::cordon || options.what == What::uncordon;
  const Kind kind = node ? Kind::node : Kind::job;
  int code = kDone;
  for (const std::string& name : options.names) {
    auto changed =
        change_object(*client, object_path(kind, options.target.ns, name), patch_of(options));
    if (!changed) {
      code = fail(changed.error());
      if (options.completions && changed.error().code == Errc::invalid)
        std::cerr << "  completions can be changed only for Indexed jobs;\n"
                     "  try: muster scale job/"
                  << name << " --parallelism N\n";
      if (code == kUnreachable) return code;
      continue;
    }
    std::cout << kind_name(kind) << "/" << name << " " << done_word(options.what) << std::endl;
  }
  return code;
}

}  // namespace muster::cli
