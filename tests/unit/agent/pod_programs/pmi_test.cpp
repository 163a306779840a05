#include "agent/pod_programs/pmi.hpp"

#include <gtest/gtest.h>

namespace muster::agent {
namespace {

std::string said(PmiRank& rank, std::string_view line) {
  return rank.take(line).text;
}

// The requests of MPICH 4.0, in its order.
TEST(Pmi, AnswersRequestsOfMpich) {
  PmiRank rank(3, "kvs_j", "(vector,(0,3,1))");
  EXPECT_FALSE(rank.unfinished());
  EXPECT_EQ(said(rank, "cmd=init pmi_version=1 pmi_subversion=1"),
            "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n");
  EXPECT_EQ(said(rank, "cmd=get_maxes"),
            "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\n");
  EXPECT_EQ(said(rank, "cmd=get_appnum"), "cmd=appnum appnum=0\n");
  EXPECT_EQ(said(rank, "cmd=get_universe_size"), "cmd=universe_size size=3\n");
  EXPECT_EQ(said(rank, "cmd=get_my_kvsname"), "cmd=my_kvsname kvsname=kvs_j\n");
  EXPECT_EQ(said(rank, "cmd=get kvsname=kvs_j key=PMI_process_mapping"),
            "cmd=get_result rc=0 msg=success value=(vector,(0,3,1))\n");
  EXPECT_EQ(said(rank, "cmd=put kvsname=kvs_j key=bc-0 value=mpi#0A1B$ x=y"),
            "cmd=put_result rc=0 msg=success\n");
  EXPECT_EQ(rank.puts(), (PmiRank::KeyValues{{"bc-0", "mpi#0A1B$ x=y"}}));
  EXPECT_EQ(said(rank, "cmd=get kvsname=kvs_j key=bc-1"),
            "cmd=get_result rc=-1 msg=key_bc-1_not_found value=unknown\n");
  const PmiRank::Reply fence = rank.take("cmd=barrier_in");
  EXPECT_TRUE(fence.fence);
  EXPECT_EQ(fence.text, "");
  EXPECT_EQ(rank.fences(), 1u);
  EXPECT_EQ(rank.fenced({{"bc-0", "mpi#0A1B$ x=y"}, {"bc-1", "there"}}), "cmd=barrier_out rc=0\n");
  EXPECT_EQ(said(rank, "cmd=get kvsname=kvs_j key=bc-1"),
            "cmd=get_result rc=0 msg=success value=there\n");
  EXPECT_TRUE(rank.unfinished());
  EXPECT_EQ(said(rank, "cmd=finalize"), "cmd=finalize_ack rc=0\n");
  EXPECT_FALSE(rank.unfinished());
}

TEST(Pmi, RefusesUnknownCommandsAndReportsAbort) {
  PmiRank rank(2, "k", "");
  EXPECT_EQ(said(rank, "cmd=publish_name service=x port=y"),
            "cmd=publish_name_result rc=-1 msg=not_supported\n");
  EXPECT_EQ(said(rank, "mcmd=spawn"), "");
  EXPECT_EQ(said(rank, "nprocs=2"), "");
  EXPECT_EQ(said(rank, "endcmd"), "cmd=spawn_result rc=-1 msg=not_supported\n");
  EXPECT_TRUE(rank.take("GET / HTTP/1.1").broken);
  EXPECT_EQ(rank.take("cmd=abort exitcode=7").abort, 7);
}

TEST(Pmi, LimitsKeysAndValuesOfRank) {
  PmiRank rank(2, "k", "");
  const std::string long_key(PmiRank::kKeyMax + 1, 'k'), long_value(PmiRank::kValueMax + 1, 'v');
  for (const std::string& line :
       {"cmd=put key=" + long_key + " value=v", "cmd=put key=k value=" + long_value,
        std::string("cmd=put value=v")})
    EXPECT_EQ(said(rank, line), "cmd=put_result rc=-1 msg=too_long_or_too_many\n");
  EXPECT_TRUE(rank.puts().empty());
  EXPECT_EQ(said(rank, "cmd=put key=" + long_key.substr(1) + " value=" + long_value.substr(1)),
            "cmd=put_result rc=0 msg=success\n");
  for (size_t i = 1; i < PmiRank::kKeysMax; ++i)
    rank.take("cmd=put key=" + std::to_string(i) + " value=v");
  EXPECT_EQ(said(rank, "cmd=put key=one-more value=v"),
            "cmd=put_result rc=-1 msg=too_long_or_too_many\n");
}

TEST(Pmi, MapsRanksToNodes) {
  EXPECT_EQ(process_mapping({"a"}), "(vector,(0,1,1))");
  EXPECT_EQ(process_mapping({"a", "b", "c"}), "(vector,(0,3,1))");
  EXPECT_EQ(process_mapping({"a", "a", "b", "b"}), "(vector,(0,2,2))");
  EXPECT_EQ(process_mapping({"a", "b", "a", "c", "c"}), "(vector,(0,2,1),(0,1,1),(2,1,2))");
}

}  // namespace
}  // namespace muster::agent
