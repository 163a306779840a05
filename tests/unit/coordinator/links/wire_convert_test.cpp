// Conversion of an agent's reports, and of templates for agents of this version and earlier ones.
#include "coordinator/links/wire_convert.hpp"

#include "core/node/template_codec.hpp"

#include <capnp/message.h>
#include <gtest/gtest.h>

namespace muster::coordinator {
namespace {

// The causes read from a report of one end and of its only container.
std::pair<core::EndCause, core::EndCause> taken(wire::EndCause cause) {
  capnp::MallocMessageBuilder message;
  auto params = message.initRoot<wire::Session::ReportParams>();
  auto end = params.initEnds(1)[0];
  end.initPod().setJob(7);
  end.setCause(cause);
  end.initContainers(1)[0].setCause(cause);
  const auto jobs = read_report(1, params.getStarts().asReader(), params.getEnds().asReader());
  const auto& read = jobs.at(7).ends.at(0);
  return {read.cause, read.containers.at(0).cause};
}

TEST(WireConvert, AgentCannotReportNodeAsLostOrDeleted) {
  using core::EndCause;
  EXPECT_EQ(taken(wire::EndCause::EVICTED), std::pair(EndCause::evicted, EndCause::evicted));
  EXPECT_EQ(taken(wire::EndCause::RETURNED), std::pair(EndCause::returned, EndCause::returned));
  EXPECT_EQ(taken(wire::EndCause::WORKER_UNREACHABLE),
            std::pair(EndCause::worker_unreachable, EndCause::worker_unreachable));
  for (auto cause :
       {wire::EndCause::NODE_LOST, wire::EndCause::NODE_DELETED, static_cast<wire::EndCause>(99)})
    EXPECT_EQ(taken(cause), std::pair(EndCause::exited, EndCause::exited));
}

// The CPUs read from a report of one start.
std::string cpus_taken(const char* text) {
  capnp::MallocMessageBuilder message;
  auto params = message.initRoot<wire::Session::ReportParams>();
  auto start = params.initStarts(1)[0];
  start.initPod().setJob(7);
  start.setCpus(text);
  return read_report(1, params.getStarts().asReader(), params.getEnds().asReader())
      .at(7)
      .starts.at(0)
      .cpus;
}

TEST(WireConvert, AgentCanReportOnlyListsOfCpus) {
  EXPECT_EQ(cpus_taken("0-3,8"), "0-3,8");
  EXPECT_EQ(cpus_taken("0,1"), "0-1");
  EXPECT_EQ(cpus_taken(""), "");
  EXPECT_EQ(cpus_taken("<b>0</b>"), "");
}

// The CPUs that a container may have for itself.
uint32_t cpus_of(const core::StringMap& requests, const core::StringMap& limits) {
  core::JobObject object;
  auto& container = object.spec.pod.containers.emplace_back();
  container.name = "main";
  container.resources.requests = requests;
  container.resources.limits = limits;
  return template_of(7, object, {}).containers.at(0).cpus;
}

TEST(WireConvert, ContainersMayHaveTheCpusThatTheyRequest) {
  EXPECT_EQ(cpus_of({}, {}), 0u);
  EXPECT_EQ(cpus_of({{"cpu", "2"}}, {}), 2u);
  EXPECT_EQ(cpus_of({{"cpu", "2000m"}}, {{"cpu", "2"}}), 2u);
  EXPECT_EQ(cpus_of({{"cpu", "2"}}, {{"cpu", "4"}}), 0u) << "it may use others, too";
  EXPECT_EQ(cpus_of({{"cpu", "1500m"}}, {}), 0u);
  EXPECT_EQ(cpus_of({}, {{"cpu", "3"}}), 3u) << "without a request, the limit is one";
  EXPECT_EQ(cpus_of({{"cpu", "0"}}, {{"cpu", "3"}}), 0u) << "it is not placed for any";
}

core::node::PodTemplate some_template() {
  core::JobObject object;
  object.meta.name = "j";
  object.meta.annotations = {{"muster.dev/owner-uid", "1001"}, {"muster.dev/owner-gid", "100"}};
  object.spec.pod.containers.emplace_back().name = "main";
  return template_of(7, object, {});
}

TEST(WireConvert, AgentGetsTemplateAsBytesOnlyIfItTakesThem) {
  for (const bool as_bytes : {false, true}) {
    capnp::MallocMessageBuilder message;
    auto out = message.initRoot<wire::PodTemplate>();
    write_template(out, some_template(), as_bytes);
    EXPECT_EQ(out.hasBytes(), as_bytes);
    EXPECT_EQ(out.hasJobName(), !as_bytes) << "nothing is sent twice";
    const Permit permit{"c", "n1", 1, {1001, 100, "alice", {100}, "/"}, some_template()};
    const auto key = *PermitKey::of_private(std::string(64, '7'));
    write_signed(out, permit, key);
    auto text = [](capnp::Data::Reader data) {
      return std::string(data.asChars().begin(), data.size());
    };
    const std::string job = text(out.getBytes().asReader()),
                      bytes = text(out.getPermit().asReader());
    EXPECT_TRUE(verify_permit(key.public_hex(), bytes + job, text(out.getSignature().asReader())));
    const auto read = read_permit(bytes, job);
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(read->job.job_name, "j");
  }
}

}  // namespace
}  // namespace muster::coordinator
