#include "core/spec/values/mail.hpp"

#include <gmock/gmock.h>

namespace muster::core {
namespace {

TEST(Mail, AddressesAreReadInOrder) {
  const auto read = parse_mail("ada@example.org,bob,eve.x_y+z-1@mail-1.example.org");
  ASSERT_TRUE(read.ok());
  EXPECT_THAT(*read,
              testing::ElementsAre("ada@example.org", "bob", "eve.x_y+z-1@mail-1.example.org"));
}

TEST(Mail, WhatAHeaderOrAProgramMightMisunderstandIsRefused) {
  for (const char* text : {"", ",", "ada,", "-bcc@example.org", "ada@", "@example.org", "a b@c",
                           "ada@example.org\nBcc: eve", "ada;rm -rf /", "ada@-x", "a..b", "a.",
                           "\"ada\"@example.org", "ada@ex@ample", "|cat", "/var/x", "a@b,,c"})
    EXPECT_FALSE(parse_mail(text).ok()) << text;
  const auto wrong = parse_mail("ada,b ob");
  ASSERT_FALSE(wrong.ok());
  EXPECT_THAT(wrong.error().message, testing::StartsWith("`b ob` is not a mail address"));
}

TEST(Mail, LengthsAndNumbersAreBounded) {
  EXPECT_TRUE(parse_mail(std::string(64, 'a')).ok());
  EXPECT_FALSE(parse_mail(std::string(65, 'a')).ok());
  EXPECT_TRUE(parse_mail("a@" + std::string(255, 'b')).ok());
  EXPECT_FALSE(parse_mail("a@" + std::string(256, 'b')).ok());
  EXPECT_TRUE(parse_mail("a,b,c,d,e,f,g,h").ok());
  EXPECT_FALSE(parse_mail("a,b,c,d,e,f,g,h,i").ok());
}

}  // namespace
}  // namespace muster::core
