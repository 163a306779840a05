#include "keeper/start/last_step.hpp"

#include "base/clock.hpp"
#include "base/exec_exit.hpp"
#include "core/node/values.hpp"
#include "keeper/start/search_path.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace muster::keeper {
namespace {

std::string text_of(const StartFailure& failure) {
  char text[512];
  return {text, failure.describe(text, sizeof text)};
}

class LastStepTest : public testing::Test {
 protected:
  // Of a child that takes this step with /bin/true; 200: its exec has failed.
  static int taken(const LastStep& step, const std::vector<std::string>& programs) {
    const pid_t child = fork();
    if (child == 0) {
      char name[] = "true";
      char* argv[] = {name, nullptr};
      step.execute(programs, argv, environ);
      _exit(200);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
  }
  static StartFailure failure_of(const LastStep& step, const std::vector<std::string>& programs) {
    static char name[] = "name";
    static char* argv[] = {name, nullptr};
    return step.execute(programs, argv, environ);
  }
};

TEST_F(LastStepTest, P12NothingIsExecutedAtOrAfterTheEndOfItsLease) {
  EXPECT_EQ(taken({}, {"/bin/true"}), 0) << "no lease";
  EXPECT_EQ(taken({.not_after_ms = boot_now() + 60'000}, {"/bin/true"}), 0);
  for (const Millis ago : {0, 1}) {
    const LastStep late{.not_after_ms = boot_now() - ago};
    EXPECT_EQ(taken(late, {"/bin/true"}), 200);
    const StartFailure failure = failure_of(late, {"/no/such"});
    EXPECT_EQ(failure.what, kTooLate);
    EXPECT_EQ(failure.exit_code, core::kExitNotHere);
    EXPECT_EQ(text_of(failure), "it could not be started while its node's lease lasted");
  }
}

TEST_F(LastStepTest, ProgramsAreTriedInTurn) {
  EXPECT_EQ(taken({}, {"/no/such", "/etc/passwd", "/bin/true"}), 0);
  struct Case {
    std::vector<std::string> programs;
    int exit_code;
    const char* text;
  };
  const Case cases[] = {
      {{"/no/such"}, kExitNotFound, "exec /no/such: No such file or directory"},
      {{"/no/such", "/nor/this"}, kExitNotFound, "exec name: No such file or directory"},
      {{"/etc/passwd/x"}, kExitNotFound, "exec /etc/passwd/x: No such file or directory"},
      {{"/etc/passwd"}, kExitCannotStart, "exec /etc/passwd: Permission denied"},
      {{"/etc/passwd", "/no/such"}, kExitCannotStart, "exec name: Permission denied"},
  };
  for (const Case& one : cases) {
    const StartFailure failure = failure_of({}, one.programs);
    EXPECT_EQ(failure.exit_code, one.exit_code) << one.text;
    EXPECT_EQ(text_of(failure), one.text);
  }
}

// The kernel says "not found" of them, too, but it is not the file that is missing.
TEST_F(LastStepTest, P15MissingInterpreterIsTheScriptsOwnFault) {
  const auto script = [](const std::string& name, const std::string& first_line) {
    const std::string path = testing::TempDir() + "last-step-" + name;
    std::ofstream(path) << first_line << "\n";
    chmod(path.c_str(), 0755);
    return path;
  };
  const std::string missing = script("missing", "#!/no/such/interpreter");
  const std::string below = script("below", "#!/etc/passwd/interpreter -x");
  const std::string link = testing::TempDir() + "last-step-link";
  std::filesystem::remove(link);
  std::filesystem::create_symlink("/no/such", link);
  const struct {
    std::vector<std::string> programs;
    int exit_code;
    std::string text;
  } cases[] = {
      {{missing}, kExitCannotStart, missing + ": bad interpreter: No such file or directory"},
      {{below}, kExitCannotStart, below + ": bad interpreter: Not a directory"},
      {{missing, "/no/such"}, kExitCannotStart, "name: bad interpreter: No such file or directory"},
      {{"/no/such", missing}, kExitCannotStart, "name: bad interpreter: No such file or directory"},
      {{missing, "/etc/passwd"}, kExitCannotStart, "name: Permission denied"},
      {{"/etc/passwd", missing}, kExitCannotStart, "name: Permission denied"},
      {{link}, kExitNotFound, link + ": No such file or directory"},
  };
  for (const auto& one : cases) {
    const StartFailure failure = failure_of({}, one.programs);
    EXPECT_EQ(failure.exit_code, one.exit_code) << one.text;
    EXPECT_EQ(text_of(failure), "exec " + one.text);
  }
  EXPECT_EQ(taken({}, {missing, "/bin/true"}), 0) << "another one may do";
}

TEST_F(LastStepTest, MissingDefaultDirectoryIsTheRoot) {
  const LastStep without{.cwd = "/no/such"};
  const StartFailure failure = without.begin();
  EXPECT_EQ(failure.exit_code, core::kExitNotHere);
  EXPECT_EQ(text_of(failure), "cwd /no/such: No such file or directory");
  const pid_t child = fork();
  if (child == 0) {
    const LastStep step{.cwd = "/no/such", .home = true};
    _exit(!step.begin() && access("proc", F_OK) == 0 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(SearchPath, NamesWithoutSlashAreLookedUp) {
  using Paths = std::vector<std::string>;
  EXPECT_EQ(programs_named("/bin/x", "/a:/b"), Paths{"/bin/x"});
  EXPECT_EQ(programs_named("./x", "/a:/b"), Paths{"./x"});
  EXPECT_EQ(programs_named("x", "/a:/b"), (Paths{"/a/x", "/b/x"}));
  EXPECT_EQ(programs_named("x", "/a::b", "/d"), (Paths{"/a/x", "/d//x", "/d/b/x"}));
  EXPECT_EQ(programs_named("x", ""), Paths{".//x"});
}

}  // namespace
}  // namespace muster::keeper
