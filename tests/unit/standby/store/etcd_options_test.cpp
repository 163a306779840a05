// The value of --store.
#include "standby/store/etcd_options.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace muster::standby {
namespace {

TEST(ParseStore, UrlsAndPrefix) {
  struct Case {
    const char* text;
    std::vector<std::string> urls;
    const char* prefix;
  };
  const Case cases[] = {
      {"etcd:http://h:2379", {"http://h:2379"}, "/muster/"},
      {"etcd:http://h", {"http://h:2379"}, "/muster/"},
      {"etcd:http://h/", {"http://h:2379"}, "/muster/"},
      {"etcd:https://10.0.0.1:1", {"https://10.0.0.1:1"}, "/muster/"},
      {"etcd:http://[::1]:65535", {"http://[::1]:65535"}, "/muster/"},
      {"etcd:http://[fe80::1]", {"http://[fe80::1]:2379"}, "/muster/"},
      {"etcd:http://a:1,https://b.site:2,http://c",
       {"http://a:1", "https://b.site:2", "http://c:2379"},
       "/muster/"},
      {"etcd:http://a:2379/sites/x", {"http://a:2379"}, "/sites/x/"},
      {"etcd:http://a/x/,http://b", {"http://a:2379", "http://b:2379"}, "/x/"},
      {"etcd:http://a,http://b/x-1_2.3", {"http://a:2379", "http://b:2379"}, "/x-1_2.3/"},
      {"etcd:http://a/x,http://b/x/", {"http://a:2379", "http://b:2379"}, "/x/"},
  };
  for (const Case& c : cases) {
    const auto options = parse_store(c.text);
    ASSERT_TRUE(options.ok()) << c.text << ": " << options.error().message;
    EXPECT_EQ(options->urls, c.urls) << c.text;
    EXPECT_EQ(options->prefix, c.prefix) << c.text;
  }
}

TEST(ParseStore, WhatIsWrongIsSaid) {
  struct Case {
    const char* text;
    const char* message;
  };
  const Case cases[] = {
      {"",
       "--store: \"\" does not begin with \"etcd:\", the only kind of store there is; for example, "
       "--store etcd:http://a:2379,http://b:2379,http://c:2379"},
      {"http://h:2379",
       "--store: \"http://h:2379\" does not begin with \"etcd:\", the only kind of store there is; "
       "for example, --store etcd:http://a:2379,http://b:2379,http://c:2379"},
      {"etcd:",
       "--store: a URL is missing; for example, --store "
       "etcd:http://a:2379,http://b:2379,http://c:2379"},
      {"etcd:http://a,",
       "--store: a URL is missing; for example, --store "
       "etcd:http://a:2379,http://b:2379,http://c:2379"},
      {"etcd:a:2379", "--store: \"a:2379\": it must begin with http:// or https://"},
      {"etcd:http://a,ftp://b", "--store: \"ftp://b\": it must begin with http:// or https://"},
      {"etcd:http://", "--store: \"http://\": it has no host"},
      {"etcd:http://:2379", "--store: \"http://:2379\": it has no host"},
      {"etcd:http://a,http://u:p@h", "--store: URL 2 must not contain a user or a password"},
      {"etcd:http://a b", "--store: \"http://a b\": \"a b\" is not the name of a host"},
      {"etcd:http://a?x=1", "--store: \"http://a?x=1\": \"a?x=1\" is not the name of a host"},
      {"etcd:http://a\nb", "--store: \"http://a\\nb\": \"a\\nb\" is not the name of a host"},
      {"etcd:http://a:0",
       "--store: \"http://a:0\": \"0\" is not a port; an IPv6 address needs brackets"},
      {"etcd:http://a:65536",
       "--store: \"http://a:65536\": \"65536\" is not a port; an IPv6 address needs brackets"},
      {"etcd:http://a:",
       "--store: \"http://a:\": \"\" is not a port; an IPv6 address needs brackets"},
      {"etcd:http://a:80x",
       "--store: \"http://a:80x\": \"80x\" is not a port; an IPv6 address needs brackets"},
      {"etcd:http://fe80::1",
       "--store: \"http://fe80::1\": \":1\" is not a port; an IPv6 address needs brackets"},
      {"etcd:http://[::1", "--store: \"http://[::1\": the IPv6 address has no closing bracket"},
      {"etcd:http://[a]", "--store: \"http://[a]\": there is no IPv6 address in the brackets"},
      {"etcd:http://[::1]2379", "--store: \"http://[::1]2379\": a port must follow the brackets"},
      {"etcd:http://a:2379,http://a", "--store: http://a:2379 is in it twice"},
      {"etcd:http://a//x",
       "--store: \"http://a//x\": the prefix of the keys consists of parts like /sites/x, made of "
       "letters, digits, \"-\", \"_\" and \".\""},
      {"etcd:http://a/x?y",
       "--store: \"http://a/x?y\": the prefix of the keys consists of parts like /sites/x, made of "
       "letters, digits, \"-\", \"_\" and \".\""},
      {"etcd:http://a/x,http://b/y",
       "--store: \"http://b/y\": another URL has the prefix /x; all keys have the same prefix, so "
       "one URL with it is enough"},
  };
  for (const Case& c : cases) {
    const auto options = parse_store(c.text);
    ASSERT_FALSE(options.ok()) << c.text;
    EXPECT_EQ(options.error().code, Errc::invalid) << c.text;
    EXPECT_EQ(options.error().message, c.message) << c.text;
  }
}

}  // namespace
}  // namespace muster::standby
