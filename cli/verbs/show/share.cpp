// muster share: what each user has of the cluster, and who gets the next slot.
#include "cli/verbs/show/share.hpp"

#include "cli/verbs/words.hpp"
#include "client/connect/discovery.hpp"
#include "client/connect/objects.hpp"
#include "client/terminal/exit_codes.hpp"
#include "client/terminal/table.hpp"

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace muster::cli {
namespace {

double part_at(const Json& row, const char* field) {
  const Json& value = at(row, {field});
  return value.is_number() ? value.get<double>() : 0;
}

std::string percent(double part) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f%%", part * 100);
  return text;
}

std::string decimal(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", number);
  return text;
}

}  // namespace

int execute(const ShareOptions& options) {
  const auto client = connect(options.target);
  auto shares = object(*client, "/apis/muster.dev/v1/shares");
  if (!shares) return fail(shares.error());
  const Json& items = at(*shares, {"items"});
  const bool queues = std::any_of(items.begin(), items.end(), [](const Json& one) {
    const std::string queue = text_at(one, {"queue"});
    return !queue.empty() && queue != kDefaultQueue;
  });
  std::vector<std::vector<std::string>> rows;
  auto add = [&](std::vector<std::string> row) {
    if (!queues) row.erase(row.begin() + 1);
    rows.push_back(std::move(row));
  };
  if (options.headers) add({"USER", "QUEUE", "HELD", "RECENT", "WEIGHT", "WAITING"});
  for (const Json& one : items) {
    const std::string name = text_at(one, {"user"}), queue = text_at(one, {"queue"});
    add({name.empty() ? std::to_string(number_at(one, {"uid"})) : name,
         queue.empty() ? "<none>" : queue, percent(part_at(one, "held")),
         percent(part_at(one, "recent")), decimal(part_at(one, "weight")),
         std::to_string(number_at(one, {"waiting"}))});
  }
  if (items.empty()) {
    std::cerr << "No user has or wants anything, or had any of the cluster recently.\n";
    return kDone;
  }
  std::cout << aligned(rows, "") << std::flush;
  return kDone;
}

Verb share_verb() {
  struct Words {
    ShareOptions o;
    bool no_headers = false;
  };
  auto w = std::make_shared<Words>();
  return {
      .title = {"Jobs", "share", "Show what each user has of the cluster, and who goes next"},
      .rows = {{"--no-headers", "", "Omit the header line", &w->no_headers}},
      .asks = {&w->o.target},
      .footer =
          "Those who have least for their weight come first: of them, the first one with waiting "
          "pods gets the next slot. HELD is the part of the cluster that a user's pods hold now, "
          "by the resource of which they hold most; RECENT is its average, in which the last week "
          "counts half (--share-half-life of the coordinator); WEIGHT falls with it. Where there "
          "are several queues, those that hold least for their weight come first, and a user with "
          "jobs in two has a share in each.",
      .finish = [w](const Given&) -> Judged {
        w->o.headers = !w->no_headers;
        return w->o;
      }};
}

}  // namespace muster::cli
