// Which entries of the history a filter accepts, case by case.
#include "core/history/filter.hpp"

#include <gtest/gtest.h>

namespace muster::core {
namespace {

HistoryEntry sample_entry() {
  HistoryEntry entry{.id = 1, .ns = "lab", .name = "sweep-1", .uid = "u-1"};
  entry.owner = 1001;
  entry.user = "alice";
  entry.queue = "short";
  entry.state = PastState::complete;
  entry.created_ms = 100;
  entry.ended = 200;
  return entry;
}

TEST(HistoryFilter, Table) {
  struct Case {
    const char* what;
    HistoryFilter filter;
    bool accepts;
  };
  const Case cases[] = {
      {"nothing", {}, true},
      {"own", {.owner = 1001}, true},
      {"another's", {.owner = 1002}, false},
      {"namespace", {.ns = "lab"}, true},
      {"another namespace", {.ns = "default"}, false},
      {"uid", {.uid = "u-1"}, true},
      {"another uid", {.uid = "u-2"}, false},
      {"user by name", {.users = {"bob", "alice"}}, true},
      {"user by uid", {.users = {"1001"}}, true},
      {"another user", {.users = {"bob"}}, false},
      {"queue", {.queues = {"short"}}, true},
      {"another queue", {.queues = {"long"}}, false},
      {"name", {.names = {"other", "sweep-*"}}, true},
      {"another name", {.names = {"sweep"}}, false},
      {"state", {.states = {PastState::complete}}, true},
      {"another state", {.states = {PastState::failed}}, false},
      {"not removed", {.removals = {Removal::expired}}, false},
      {"state or removal", {.states = {PastState::complete}, .removals = {Removal::expired}}, true},
      {"ended in the span", {.since = 200}, true},
      {"ended before", {.since = 201}, false},
      {"created in the span", {.until = 101}, true},
      {"created later", {.until = 100}, false},
  };
  for (const Case& c : cases) EXPECT_EQ(c.filter.accepts(sample_entry()), c.accepts) << c.what;
}

TEST(HistoryFilter, JobsThatHaveNotEndedAreInEverySpanAfterTheirCreation) {
  HistoryEntry entry = sample_entry();
  entry.ended = std::nullopt;
  EXPECT_TRUE((HistoryFilter{.since = 1'000'000}.accepts(entry)));
}

TEST(HistoryFilter, JobsWithoutAnOwnerAreNoUsers) {
  HistoryEntry entry = sample_entry();
  entry.owner = std::nullopt;
  entry.user = "";
  EXPECT_FALSE((HistoryFilter{.owner = 0}.accepts(entry)));
  EXPECT_FALSE((HistoryFilter{.users = {"0"}}.accepts(entry)));
}

TEST(MatchesPattern, Table) {
  struct Case {
    const char *pattern, *text;
    bool matches;
  };
  for (const auto& [pattern, text, matches] : {
           Case{"", "", true},
           Case{"", "a", false},
           Case{"*", "", true},
           Case{"*", "anything", true},
           Case{"a*c", "abbc", true},
           Case{"a*c", "abb", false},
           Case{"a*b*c", "a-bb-b-c", true},
           Case{"*-?", "sweep-1", true},
           Case{"*-?", "sweep-12", false},
           Case{"?", "", false},
           Case{"a**", "a", true},
           Case{"[ab]", "a", false},
       })
    EXPECT_EQ(matches_pattern(pattern, text), matches) << pattern << " on " << text;
}

}  // namespace
}  // namespace muster::core
