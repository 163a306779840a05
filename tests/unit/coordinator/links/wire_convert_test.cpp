// Conversion of an agent's reports.
#include "coordinator/links/wire_convert.hpp"

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

}  // namespace
}  // namespace muster::coordinator
