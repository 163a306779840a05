// muster share: what each user has of the cluster, and who gets the next slot.
#include "cli/verbs/show/share.hpp"

#include "client/connect/discovery.hpp"
#include "client/connect/objects.hpp"
#include "client/terminal/exit_codes.hpp"
#include "client/terminal/table.hpp"

#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
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
  std::vector<std::vector<std::string>> rows;
  if (options.headers) rows.push_back({"USER", "HELD", "RECENT", "WEIGHT", "WAITING"});
  bool any = false;
  for (const Json& one : at(*shares, {"items"})) {
    any = true;
    const std::string name = text_at(one, {"user"});
    rows.push_back({name.empty() ? std::to_string(number_at(one, {"uid"})) : name,
                    percent(part_at(one, "held")), percent(part_at(one, "recent")),
                    decimal(part_at(one, "weight")), std::to_string(number_at(one, {"waiting"}))});
  }
  if (!any) {
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
          "counts half (--share-half-life of the coordinator); WEIGHT falls with it.",
      .finish = [w](const Given&) -> Judged {
        w->o.headers = !w->no_headers;
        return w->o;
      }};
}

}  // namespace muster::cli
