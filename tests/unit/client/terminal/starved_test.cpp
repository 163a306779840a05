// What ran out, as told to the user.
#include "client/terminal/starved.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <kj/debug.h>
#include <kj/exception.h>

#include <cerrno>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <sys/resource.h>
#include <system_error>
#include <unistd.h>

namespace muster::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;

template <class Exception>
std::string want_in(Exception exception) {
  return want_of(std::make_exception_ptr(std::move(exception))).value_or("nothing");
}

std::string kj_want_in(const char* text, kj::Exception::Type type) {
  try {
    kj::throwFatalException(kj::Exception(type, __FILE__, __LINE__, kj::str(text)));
  } catch (...) {
    return want_of(std::current_exception()).value_or("nothing");
  }
}

TEST(P31Starved, ExceptionNamesExhaustedResource) {
  using kj::Exception;
  EXPECT_THAT(want_in(std::system_error(EAGAIN, std::generic_category())),
              AllOf(HasSubstr("cannot start a thread or process: Resource temporarily unavailable"),
                    HasSubstr("raise the limits on processes and memory")));
  EXPECT_THAT(want_in(std::bad_alloc()), HasSubstr("raise the limit on memory"));
  EXPECT_THAT(kj_want_in("signalfd(): Too many open files", Exception::Type::OVERLOADED),
              AllOf(HasSubstr("Too many open files: raise the limit"), HasSubstr("ulimit -n is ")));
  EXPECT_THAT(kj_want_in("std::exception: std::bad_alloc", Exception::Type::OVERLOADED),
              HasSubstr("raise the limit on memory"));
}

TEST(P31Starved, OtherExceptionsNameNoResource) {
  EXPECT_EQ(want_in(std::runtime_error("Too many open files")), "nothing");
  EXPECT_EQ(want_in(std::system_error(EPERM, std::generic_category())), "nothing");
  EXPECT_EQ(kj_want_in("write(): Too many open files", kj::Exception::Type::FAILED), "nothing");
  EXPECT_EQ(kj_want_in("try again later", kj::Exception::Type::OVERLOADED), "nothing");
}

TEST(P31Starved, MissingDescriptorsAreReportedWithLimit) {
  EXPECT_TRUE(want_descriptors(1));
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  if (limit.rlim_cur == RLIM_INFINITY) GTEST_SKIP() << "there is no limit";
  const Status all = want_descriptors(limit.rlim_cur);  // 0, 1 and 2 are open
  ASSERT_FALSE(all);
  EXPECT_THAT(all.error().message, HasSubstr("ulimit -n is " + std::to_string(limit.rlim_cur)));
}

}  // namespace
}  // namespace muster::cli
