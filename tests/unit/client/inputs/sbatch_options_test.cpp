// Options of sbatch: the flags of muster that they become, and what cannot become one.
#include "client/inputs/sbatch_options.hpp"

#include "client/settings/submitter.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace muster::cli {
namespace {

using testing::HasSubstr;

std::vector<OptionLine> lines_with(const std::string& options) {
  std::istringstream lines(options);
  std::vector<OptionLine> out;
  for (std::string line; std::getline(lines, line, '|');) {
    OptionLine& next = out.emplace_back();
    next.number = out.size() + 1;
    std::istringstream words(line);
    for (std::string word; words >> word;) next.words.push_back(word);
  }
  return out;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::string flags_of(const std::string& options, const std::string& cpus = "") {
  const auto read = read_sbatch("job.sh", lines_with(options), cpus);
  return read ? joined(read->flags) : read.error().message;
}

std::string unused_in(const std::string& options) {
  const auto read = read_sbatch("job.sh", lines_with(options), "");
  return read ? joined(read->without_meaning) : read.error().message;
}

TEST(Sbatch, PartitionsMayBeQueues) {
  const auto of = [](const std::string& options) {
    const auto read = read_sbatch("job.sh", lines_with(options), "");
    return read ? joined(read->partitions) + "|" + joined(read->without_meaning)
                : read.error().message;
  };
  EXPECT_EQ(of("-p short"), "short|");
  EXPECT_EQ(of("--partition=short,long"), "short long|");
  EXPECT_EQ(of("-p a|-p b"), "b|");
  EXPECT_EQ(of("-p ,"), "job.sh:2: -p ,: needs the name of a queue");
  EXPECT_EQ(of("-C gpu -w n1"),
            "|--constraint (the job may run on any node; see --node-selector) "
            "--nodelist (the job may run on any node; see --node-selector)");
}

TEST(Sbatch, OptionsBecomeFlags) {
  const std::pair<const char*, const char*> cases[] = {
      {"", ""},
      {"-J sweep", "--name=sweep --unique"},
      {"--job-name=My_Job.1", "--name=my-job-1 --unique"},
      {"-a 4-10:2", "--array=4-10:2"},
      {"--array=0-9%3", "--array=0-9%3"},
      {"-c 4", "--cpus=4"},
      {"-H -b 22:00", "--begin=22:00 --hold"},
      {"--hold --begin=now+1hour", "--begin=now+1hour --hold"},
      {"-c4 -N1 -n1", "--cpus=4"},
      {"--nodes=1-1 --ntasks 1 --ntasks-per-node=1", ""},
      {"--mem=4000", "--mem=4000Mi"},
      {"--mem=4G", "--mem=4Gi"},
      {"--mem 512mb", "--mem=512Mi"},
      {"--mem=16777216K", "--mem=16777216Ki"},
      {"--mem-per-cpu=2G -c 4", "--cpus=4 --mem=8Gi"},
      {"--mem-per-cpu=500", "--mem=500Mi"},
      {"--mem-per-cpu=500|--mem=1G", "--mem=1Gi"},
      {"--mem=1G|--mem-per-cpu=500", "--mem=500Mi"},
      {"--mem=0", ""},
      {"-G 2", "--gpus=2"},
      {"--gpus=a100:2", "--gpus=2"},
      {"--gres=gpu:1", "--gpus=1"},
      {"--gres=gpu", "--gpus=1"},
      {"--gres=gpu:v100", "--gpus=1"},
      {"--gres=gpu:v100:3,lscratch:10", "--gpus=3"},
      {"--gpus-per-node=4", "--gpus=4"},
      {"-D /data", "--chdir=/data"},
      {"--export=ALL", "--export=ALL"},
      {"--export=NONE", "--export=NONE"},
      {"--export=ALL,A=1,B=2", "--env=A=1 --env=B=2 --export=ALL"},
      {"--export=HOME,A=1", "--env=A=1 --export=HOME"},
      {"--export=A=1", "--env=A=1 --export=NONE"},
      {"-d afterok:a", "--after=ok:a"},
      {"--dependency=afterok:a:b,afternotok:c,afterany:d", "--after=ok:a,ok:b,notok:c,any:d"},
      {"--dep=afterok:a", "--after=ok:a"},  // getopt's short form
      {"-d aftercorr:a", "--after=each:a"},
      {"--signal=USR1", "--signal=USR1"},
      {"--signal=B:USR1@60", "--signal=B:USR1@60"},
      {"--signal=R:10@60", "--signal=10@60"},
      {"--signal=RB:TERM@5", "--signal=B:TERM@5"},
      {"--time=5|--time=10", "--time=600s"},
      {"-i /dev/null", ""},
  };
  for (const auto& [options, flags] : cases) EXPECT_EQ(flags_of(options), flags) << options;
}

TEST(Sbatch, MemoryPerCpuUsesCpusOfTheCommandLine) {
  EXPECT_EQ(flags_of("--mem-per-cpu=2G -c 4", "8"), "--cpus=4 --mem=16Gi");
  EXPECT_EQ(flags_of("--mem-per-cpu=100", "2.5"), "--mem=300Mi");
}

TEST(Sbatch, TimesAreThoseOfSlurm) {
  const std::pair<const char*, const char*> cases[] = {
      {"90", "5400s"},      {"90:30", "5430s"},       {"1:30:00", "5400s"}, {"2-12", "216000s"},
      {"1-0:30", "88200s"}, {"1-00:00:01", "86401s"}, {"00:10:00", "600s"}};
  for (const auto& [time, seconds] : cases)
    EXPECT_EQ(flags_of(std::string("-t ") + time), std::string("--time=") + seconds) << time;
  for (const char* none : {"0", "UNLIMITED", "infinite"})
    EXPECT_EQ(flags_of(std::string("-t ") + none), "") << none;
}

TEST(Sbatch, MailIsSentAtTheEndOfTheJob) {
  const auto notices = [](const char* text) {
    std::string all;
    const auto read = read_sbatch("f", lines_with(text), "");
    EXPECT_TRUE(read.ok()) << text;
    if (!read.ok()) return all;
    for (const std::string& flag : read->notices) all += (all.empty() ? "" : " ") + flag;
    return all;
  };
  EXPECT_EQ(notices("--mail-user=a@b --mail-type=ALL"), "--mail=a@b --notify-on=end");
  EXPECT_EQ(notices("--mail-type=end,fail --mail-user=a,b"), "--mail=a,b --notify-on=end");
  EXPECT_EQ(notices("--mail-user=a@b --mail-type=FAIL"), "--mail=a@b --notify-on=fail");
  EXPECT_EQ(notices("--mail-type=FAIL"), "--mail=" + user_name() + " --notify-on=fail");
  EXPECT_EQ(notices("--mail-user=a@b --mail-type=FAIL|--mail-type=NONE"), "");
  EXPECT_FALSE(read_sbatch("f", lines_with("--mail-user=a; --mail-type=END"), "").ok());
}

TEST(Sbatch, OptionsWithoutMeaningAreNamedOnce) {
  EXPECT_EQ(unused_in("-p long -A proj|--mail-type=END --mail-user a@b|--partition=x"),
            "--account");
  EXPECT_EQ(unused_in("--mail-user a@b"), "--mail-user without --mail-type");
  EXPECT_EQ(unused_in("--mail-type=BEGIN,END,NONE --mail-user a@b"), "--mail-type=BEGIN");
  EXPECT_EQ(unused_in("--exclusive -n 1 --exclusive=user"), "--exclusive");
  EXPECT_EQ(unused_in("--nice --qos long"), "--nice --qos");
  EXPECT_EQ(unused_in("--new-option value -n 1|--other --third=3|-Z x"),
            "--new-option --other --third -Z");
  EXPECT_EQ(unused_in("-o out -e err --requeue --no-requeue"), "--requeue --no-requeue")
      << "whether files can be written is for others to say";
  EXPECT_EQ(unused_in("--mem=0"), "--mem=0");
  EXPECT_EQ(unused_in("--gres=gpu:v100:1,lscratch:10"),
            "the kind of GPU, v100 (see --node-selector) --gres=lscratch");
  const auto read = read_sbatch("f", lines_with("-o o_%A_%a"), "");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->output, "o_%A_%a");
  EXPECT_EQ(read->error, std::nullopt);
}

TEST(Sbatch, ErrorsNameTheLineAndWhatIsRight) {
  const std::pair<const char*, const char*> cases[] = {
      {"-J a|--output=", "job.sh:3: --output : needs the name of a file"},
      {"--t=5", "job.sh:2: `--t`: could be --time or --test-only"},
      {"--begin=", "job.sh:2: --begin : needs a time, such as 22:00 or now+1hour"},
      {"--mem-per-cpu=9999999999999G", "must be a size such as 4000 (MiB) or 4G"},
      {"-J a|-n 4", "job.sh:3: -n 4: a script runs as one task on one node: use --array for"},
      {"--nodes=2-4", "job.sh:2: --nodes 2-4: a script runs as one task"},
      {"--ntasks-per-node=8", "muster mpirun for an MPI program"},
      {"--mem=4Q", "job.sh:2: --mem 4Q: must be a size such as 4000 (MiB) or 4G"},
      {"--time=soon", "must be a time such as 90 (minutes), 1:30:00 (hours) or 2-12"},
      {"--time=1:2:3:4", "must be a time"},
      {"--array=4-1", "job.sh:2: --array: `4-1`: 4-1 runs backwards"},
      {"-c 0", "job.sh:2: -c 0: must be a number above 0"},
      {"-c", "job.sh:2: -c needs a value"},
      {"--cpus-per-task", "job.sh:2: --cpus-per-task needs a value"},
      {"--gpus=many", "must be a number of GPUs, such as 1"},
      {"--dependency=singleton", "`singleton` cannot be used here; there are afterok:JOB"},
      {"--dependency=afterok", "`afterok` names no job"},
      {"--dependency=afterok:a?afterok:b", "all dependencies must hold"},
      {"--input=data", "read it in the script, exec <data"},
      {"--export==1", "job.sh:2: --export: `=1`: must be NAME=VALUE"},
      {"hostname", "job.sh:2: `hostname`: must be an option, such as --time=1:00:00"},
  };
  for (const auto& [options, said] : cases) EXPECT_THAT(flags_of(options), HasSubstr(said));
}

}  // namespace
}  // namespace muster::cli
