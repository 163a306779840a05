// Pages of lists: tokens, and continuing from job to job.
#include "api/view/query/list_page.hpp"

#include "tests/unit/api/view/view_fixture.hpp"

#include <gtest/gtest.h>

namespace muster::api {
namespace {

using namespace testing;

Result<ListPage> page(const std::string& query) {
  return page_of(*Url::parse("/x?" + query));
}

TEST(ListPage, ContinueTokenRoundTrips) {
  ListPage first;
  first.version = UINT64_MAX;
  const Position last{"n\xc3\xa4mespace", "job/x", 7, {UINT32_MAX, 3}, 9};
  const std::string token = continue_token(first, last);
  EXPECT_EQ(
      token.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_="),
      std::string::npos)
      << token;
  auto next = page("limit=5&continue=" + token);
  ASSERT_TRUE(next.ok()) << next.error().message;
  EXPECT_TRUE(next->resumed);
  EXPECT_EQ(next->limit, 5u);
  EXPECT_EQ(next->version, UINT64_MAX);
  EXPECT_EQ(next->after, last);
}

TEST(ListPage, RejectsMalformedTokensAndLimits) {
  for (const char* text :
       {"x", "e30", "bnVsbA", "%00", "eyJ2IjoibXVzdGVyLmRldi92MSJ9", "eyJ2Ijo3fQ", "!!!!", "WzFd"})
    EXPECT_FALSE(page(std::string("continue=") + text).ok()) << text;
  for (const char* limit : {"-1", "x", "1.5", "99999999999999999999", " 1"})
    EXPECT_FALSE(page(std::string("limit=") + limit).ok()) << limit;
  EXPECT_TRUE(page("limit=0").ok());
  EXPECT_TRUE(page("resourceVersion=0").ok());
}

TEST(ListPage, WalksAndCountsJobByJob) {
  View view;
  Feeder feed{view};
  feed.admit(1, make_job("b", uid_of(1), 4));
  feed.admit(2, make_job("a", uid_of(2), 4));
  feed.admit(3, make_job("a", uid_of(3), 4, "", "other"));
  feed.create(1, 0, 4);
  feed.create(3, 0, 3);
  std::string walked;
  View::Place at;
  while (auto next = view.next_job("", at)) {
    at = *next;
    walked += std::get<0>(at) + "/" + std::get<1>(at) + " ";
  }
  EXPECT_EQ(walked, "default/a default/b other/a ");
  EXPECT_FALSE(view.next_job("default", {"default", "b", 1}));
  EXPECT_EQ(view.count_after(Kind::pod, "", {"default", "a", 2}), 7u);
  EXPECT_EQ(view.count_after(Kind::pod, "default", {"default", "a", 2}), 4u);
  EXPECT_EQ(view.count_after(Kind::job, "", {}), 3u);
}

}  // namespace
}  // namespace muster::api
