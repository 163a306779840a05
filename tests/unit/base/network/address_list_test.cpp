// AddressList: how lists are split, and the order in which addresses are tried.
#include "base/network/address_list.hpp"

#include <gtest/gtest.h>

namespace muster {
namespace {

using Texts = std::vector<std::string>;

TEST(AddressList, IsSplitAtCommas) {
  const std::vector<std::pair<std::string, Texts>> cases = {
      {"h:1", {"h:1"}},
      {"a:1,b:2", {"a:1", "b:2"}},
      {"https://a:1,https://b:2", {"https://a:1", "https://b:2"}},
      {"unix:/run/s,a:1", {"unix:/run/s", "a:1"}},
      {"unix:/a,unix:/b", {"unix:/a", "unix:/b"}},
      {"unix:/tmp/a,b/s", {"unix:/tmp/a,b/s"}},
      {"unix:/tmp/a,b/s,https://h:1", {"unix:/tmp/a,b/s", "https://h:1"}},
      {"a:1,b/c", {"a:1", "b/c"}},
      {"", {""}},
      {"a:1,", {"a:1", ""}},
      {",a:1", {"", "a:1"}},
  };
  for (const auto& [text, parts] : cases) EXPECT_EQ(split_addresses(text), parts) << text;
}

TEST(AddressList, AnAddressHasAHostAndAPort) {
  for (const char* good : {"h:1", "127.0.0.1:7118", "[::1]:65535", "head.site:7118"})
    EXPECT_TRUE(is_host_port(good)) << good;
  for (const char* bad : {"", "h", "h:", ":1", "h:0", "h:65536", "h:7118x", "h:-1", "h:+1", "h: 1",
                          "http://h:1", "h:1/", "h:000001"})
    EXPECT_FALSE(is_host_port(bad)) << bad;
}

TEST(AddressList, EachIsTriedOnceARound) {
  AddressList list({"a", "b", "c"});
  EXPECT_EQ(list.text(), "a, b or c");
  EXPECT_EQ(list.now(), "a");
  EXPECT_TRUE(list.next("refused"));
  EXPECT_EQ(list.now(), "b");
  EXPECT_TRUE(list.next("gone"));
  EXPECT_EQ(list.now(), "c");
  EXPECT_FALSE(list.next("slow"));
  EXPECT_EQ(list.now(), "a") << "the next round begins where this one did";
  EXPECT_EQ(list.failures(), "a: refused; b: gone; c: slow");
}

TEST(AddressList, ARoundBeginsAtTheOneInUse) {
  AddressList list({"a", "b"});
  EXPECT_TRUE(list.next("refused"));
  list.begin_round();  // b served
  EXPECT_TRUE(list.next("gone")) << "a is tried before the round is over";
  EXPECT_EQ(list.now(), "a");
  EXPECT_FALSE(list.next("still refused"));
  EXPECT_EQ(list.now(), "b");
  EXPECT_EQ(list.failures(), "a: still refused; b: gone");
}

TEST(AddressList, OneIsARoundOfItsOwn) {
  AddressList list({"a"});
  EXPECT_FALSE(list.several());
  EXPECT_FALSE(list.next("refused"));
  EXPECT_EQ(list.now(), "a");
  EXPECT_EQ(list.text(), "a");
}

}  // namespace
}  // namespace muster
