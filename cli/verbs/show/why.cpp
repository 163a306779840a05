// muster why: what a job or one of its indexes is waiting for, or why it ended.
#include "cli/verbs/verbs.hpp"
#include "client/connect/discovery.hpp"
#include "client/connect/objects.hpp"
#include "client/news/attempts.hpp"
#include "client/terminal/exit_codes.hpp"

#include <iostream>

namespace muster::cli {

int execute(const WhyOptions& options) {
  const auto client = connect(options.target);
  std::string path = own_path(options.target.ns, options.job, "why");
  if (options.index) path += "?index=" + std::to_string(*options.index);
  auto why = object(*client, path);
  if (!why) return fail(why.error());
  if (options.output == Output::json) {
    std::cout << dumped(*why, 2) << "\n";
    return kDone;
  }
  if (options.output == Output::yaml) {
    std::cout << to_yaml(*why);
    return kDone;
  }
  std::cout << "job/" << options.job;
  if (options.index) std::cout << "/" << *options.index;
  std::cout << " " << text_at(*why, {"state"}) << ": " << text_at(*why, {"summary"}) << "\n";
  for (const Json& line : at(*why, {"details"}))
    std::cout << "  " << line.get<std::string>() << "\n";
  return kDone;
}

}  // namespace muster::cli
