// What is said of a machine: one fact at a time is changed in a machine that is in order.
#include "cli/doctor/client.hpp"
#include "cli/doctor/head.hpp"
#include "cli/doctor/node.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace muster::cli::doctor {
namespace {

constexpr Millis kDay = 86'400'000;

// The findings that are not ok: "warning clock". Each must say what to do.
std::string amiss(const Findings& found) {
  std::string text;
  for (const Finding& one : found.all()) {
    EXPECT_FALSE(one.check.empty() || one.found.empty()) << one.check << ": " << one.found;
    EXPECT_EQ(one.level == Level::ok, one.advice.empty()) << one.check << ": " << one.advice;
    if (one.level == Level::ok) continue;
    text += (text.empty() ? "" : ", ") + std::string(name_of(one.level)) + " " + one.check;
  }
  return text;
}

PlaceFacts good_place(const std::string& path) {
  PlaceFacts facts{.path = path, .there = true, .owner_name = "muster", .type = "ext4"};
  facts.bytes = 100ull << 30;
  facts.free_bytes = 50ull << 30;
  facts.files = 1'000'000;
  facts.free_files = 900'000;
  facts.sync_us = 2'000;
  return facts;
}

LimitFacts good_limits(const std::string& whose) {
  LimitFacts facts{.whose = whose, .known = true};
  facts.open_files = 1'024;
  facts.hard_open_files = 524'288;
  facts.locked_bytes = 8u << 20;
  return facts;
}

AddressFacts good_address(const std::string& address) {
  AddressFacts facts{.address = address};
  facts.version = "1.0.0";
  facts.clock_off_ms = 300;
  facts.clock_error_ms = 510;
  return facts;
}

ClientFacts good_client() {
  ClientFacts facts{.own_version = "1.0.0", .origin = "from --api"};
  facts.addresses = {good_address("https://head:7443")};
  facts.addresses[0].host = {.host = "head", .addresses = "10.0.0.1"};
  facts.token = {.needed = true, .path = "/home/alice/.config/muster/token", .there = true};
  facts.token.left_ms = kDay;
  facts.limits = good_limits("this shell");
  return facts;
}

template <class Facts>
struct Row {
  const char* says;
  std::function<void(Facts&)> change;
};

TEST(JudgeClient, Table) {
  using Change = Row<ClientFacts>;
  const auto second = [](ClientFacts& f) { f.addresses.push_back(good_address("10.0.0.2:7117")); };
  const Change rows[] = {
      {"", [](ClientFacts&) {}},
      {"", second},
      {"problem coordinator",
       [](ClientFacts& f) { f.addresses[0].reply.error = "connection refused"; }},
      {"warning coordinator",
       [&](ClientFacts& f) { second(f), f.addresses[0].reply.error = "connection refused"; }},
      {"problem name head",
       [](ClientFacts& f) {
         f.addresses[0].host.took_ms = 0, f.addresses[0].host.error = "Name unknown";
       }},
      {"warning name head",
       [&](ClientFacts& f) { second(f), f.addresses[0].host.error = "unknown"; }},
      {"warning name head", [](ClientFacts& f) { f.addresses[0].host.took_ms = 5'000; }},
      {"problem coordinator",
       [](ClientFacts& f) { f.addresses[0].reply.refused = "unknown token"; }},
      {"problem coordinator",
       [](ClientFacts& f) { f.addresses[0].reply.not_ready = "reading jobs"; }},
      {"problem coordinator", [](ClientFacts& f) { f.addresses[0].reply.follows = true; }},
      {"", [&](ClientFacts& f) { second(f), f.addresses[0].reply.follows = true; }},
      {"warning version", [](ClientFacts& f) { f.addresses[0].version = "0.9.0"; }},
      {"unknown clock", [](ClientFacts& f) { f.addresses[0].clock_off_ms.reset(); }},
      {"", [](ClientFacts& f) { f.addresses[0].clock_off_ms = -2'500; }},
      {"warning clock", [](ClientFacts& f) { f.addresses[0].clock_off_ms = -2'511; }},
      {"warning clock", [](ClientFacts& f) { f.addresses[0].clock_off_ms = 60'000; }},
      {"problem clock", [](ClientFacts& f) { f.addresses[0].clock_off_ms = 3'600'000; }},
      {"unknown coordinator, problem token",
       [](ClientFacts& f) {
         f.token.error = "it can be read by other users: chmod 600";
         f.addresses[0].not_asked = "it wants a token";
       }},
      // Not needed, but others can use it.
      {"warning token",
       [](ClientFacts& f) { f.token.needed = false, f.token.error = "can be read by others"; }},
      {"", [](ClientFacts& f) { f.token.needed = false, f.token.there = false; }},
      {"problem token", [](ClientFacts& f) { f.token.left_ms = 0; }},
      {"warning token", [](ClientFacts& f) { f.token.left_ms = 60'000; }},
      {"", [](ClientFacts& f) { f.token.left_ms.reset(); }},
      {"problem munge", [](ClientFacts& f) { f.munge = MungeFacts{.error = "no socket"}; }},
      {"", [](ClientFacts& f) { f.munge = MungeFacts{}; }},
      {"problem authority",
       [](ClientFacts& f) { f.authority = CertificateFacts{.path = "/ca.pem"}; }},
      {"warning open files", [](ClientFacts& f) { f.limits.hard_open_files = 64; }},
      {"unknown open files", [](ClientFacts& f) { f.limits.known = false, f.limits.why = "x"; }},
  };
  size_t row = 0;
  for (const auto& [says, change] : rows) {
    ClientFacts facts = good_client();
    change(facts);
    Findings found;
    judge_client(facts, found);
    EXPECT_EQ(amiss(found), says) << "row " << row;
    ++row;
  }
}

TEST(JudgeClient, NamesTheAddressAndHowFarTheClocksAre) {
  ClientFacts facts = good_client();
  facts.addresses[0].clock_off_ms = 95'000;
  Findings found;
  judge_client(facts, found);
  std::string clock;
  for (const Finding& one : found.all())
    if (one.check == "clock") clock = one.found;
  EXPECT_EQ(clock, "this machine's clock is 95s behind the coordinator's");
}

TEST(JudgeCertificate, Table) {
  using Change = Row<CertificateFacts>;
  const Change rows[] = {
      {"", [](CertificateFacts&) {}},
      {"problem c", [](CertificateFacts& f) { f.there = false; }},
      {"problem c", [](CertificateFacts& f) { f.error = "not in PEM"; }},
      {"unknown c", [](CertificateFacts& f) { f.may_read = false, f.error = "Permission denied"; }},
      {"problem c", [](CertificateFacts& f) { f.left_ms = -1; }},
      {"warning c", [](CertificateFacts& f) { f.left_ms = kDay; }},
      {"problem c", [](CertificateFacts& f) { f.begins_in_ms = 60'000; }},
  };
  size_t row = 0;
  for (const auto& [says, change] : rows) {
    CertificateFacts facts{.path = "/c.pem", .there = true, .left_ms = 30 * kDay};
    change(facts);
    Findings found;
    judge_certificate(facts, "c", 3 * kDay, "renew it", found);
    EXPECT_EQ(amiss(found), says) << "row " << row;
    ++row;
  }
}

NodeFacts good_node() {
  NodeFacts facts;
  facts.work_dir = good_place("/local/muster");
  facts.reserve_bytes = 100u << 20;
  facts.tmp = good_place("/tmp");
  facts.tmp.mode = 01777;
  facts.limits = good_limits("the keeper (pid 7)");
  facts.slots = 8;
  facts.cgroup = {.mounted = true, .keeper = true, .path = "/sys/fs/cgroup/x"};
  facts.cgroup.memory = facts.cgroup.cpu = true;
  facts.cgroup.pids_max = kUnlimited;
  facts.keeper = {.agent_pid = 6, .keeper_pid = 7, .of_root = true};
  facts.certificate = CertificateFacts{.path = "/c.pem", .there = true, .left_ms = 20 * kDay};
  facts.links = {{.address = "head:7444"}};
  facts.own_name = {.host = "c01", .addresses = "10.0.0.11"};
  facts.homes = {.looked_at = 3};
  facts.launchers = {"/usr/bin/mpirun"};
  return facts;
}

const Row<NodeFacts> kNodeRows[] = {
    {"", [](NodeFacts&) {}},
    {"problem configuration", [](NodeFacts& f) { f.config_error = "a.yaml:2: unknown key x"; }},
    {"problem work-dir", [](NodeFacts& f) { f.work_dir.there = false; }},
    {"", [](NodeFacts& f) { f.work_dir = {}; }},
    {"problem work-dir", [](NodeFacts& f) { f.work_dir.directory = false; }},
    {"unknown work-dir", [](NodeFacts& f) { f.work_dir.not_seen = "Permission denied"; }},
    {"problem work-dir", [](NodeFacts& f) { f.work_dir.read_only = true; }},
    {"problem work-dir", [](NodeFacts& f) { f.work_dir.mode = 0777; }},
    {"warning work-dir", [](NodeFacts& f) { f.work_dir.type = "nfs4"; }},
    {"warning work-dir", [](NodeFacts& f) { f.work_dir.type = "tmpfs"; }},
    {"problem work-dir space", [](NodeFacts& f) { f.work_dir.free_bytes = 99u << 20; }},
    {"warning work-dir space", [](NodeFacts& f) { f.work_dir.free_bytes = 200u << 20; }},
    {"problem work-dir inodes", [](NodeFacts& f) { f.work_dir.free_files = 99; }},
    {"warning work-dir inodes", [](NodeFacts& f) { f.work_dir.free_files = 999; }},
    {"", [](NodeFacts& f) { f.work_dir.files = 0, f.work_dir.free_files = 0; }},
    {"", [](NodeFacts& f) { f.work_dir.sync_us = 50'000; }},
    {"warning work-dir sync", [](NodeFacts& f) { f.work_dir.sync_us = 50'001; }},
    {"unknown work-dir sync",
     [](NodeFacts& f) { f.work_dir.sync_us.reset(), f.work_dir.no_sync = "cannot write there"; }},
    {"problem /tmp", [](NodeFacts& f) { f.tmp.mode = 0755; }},
    {"problem /tmp", [](NodeFacts& f) { f.tmp.there = false; }},
    {"problem /tmp", [](NodeFacts& f) { f.tmp.read_only = true; }},
    {"warning /tmp", [](NodeFacts& f) { f.tmp.noexec = true; }},
    {"warning /tmp", [](NodeFacts& f) { f.tmp.free_bytes = 1u << 20; }},
    {"warning agent", [](NodeFacts& f) { f.keeper.agent_pid = 0; }},
    {"problem keeper", [](NodeFacts& f) { f.keeper.keeper_pid = 0; }},
    {"problem keeper", [](NodeFacts& f) { f.keeper.keeper_pid = 0, f.keeper.of_root = false; }},
    {"warning agent", [](NodeFacts& f) { f.keeper = {}; }},  // it will start one
    {"warning agent", [](NodeFacts& f) { f.keeper.agent_outdated = true; }},
    {"warning keeper", [](NodeFacts& f) { f.keeper.keeper_outdated = true; }},
    {"unknown keeper", [](NodeFacts& f) { f.keeper.not_seen = "Permission denied"; }},
    {"warning cgroup", [](NodeFacts& f) { f.cgroup.mounted = false; }},
    {"warning cgroup", [](NodeFacts& f) { f.cgroup.cpu = false; }},
    {"unknown cgroup", [](NodeFacts& f) { f.cgroup.not_seen = "Permission denied"; }},
    {"warning tasks", [](NodeFacts& f) { f.cgroup.pids_max = 799; }},
    {"", [](NodeFacts& f) { f.cgroup.pids_max = 800; }},
    {"warning open files", [](NodeFacts& f) { f.limits.hard_open_files = 1'024; }},
    {"warning processes", [](NodeFacts& f) { f.limits.processes = 799; }},
    {"warning limits", [](NodeFacts& f) { f.limits.cpu_seconds = 3'600; }},
    {"warning limits", [](NodeFacts& f) { f.limits.file_bytes = 1u << 30; }},
    {"warning limits", [](NodeFacts& f) { f.limits.address_bytes = 1u << 30; }},
    {"warning locked memory", [](NodeFacts& f) { f.has_rdma = true; }},
    {"", [](NodeFacts& f) { f.has_rdma = true, f.limits.locked_bytes = kUnlimited; }},
    {"problem certificate", [](NodeFacts& f) { f.certificate->left_ms = -1; }},
    {"problem coordinator", [](NodeFacts& f) { f.links[0].error = "connection refused"; }},
    {"warning coordinator",
     [](NodeFacts& f) { f.links.push_back({.address = "b:1", .error = "connection refused"}); }},
    {"problem name head",
     [](NodeFacts& f) { f.links[0].host = {.host = "head", .error = "unknown"}; }},
    {"warning host name", [](NodeFacts& f) { f.own_name.error = "unknown"; }},
    {"warning homes", [](NodeFacts& f) { f.homes.missing = {"alice (/home/alice)"}; }},
};

TEST(JudgeNode, Table) {
  size_t row = 0;
  for (const auto& [says, change] : kNodeRows) {
    NodeFacts facts = good_node();
    change(facts);
    Findings found;
    judge_node(facts, found);
    EXPECT_EQ(amiss(found), says) << "row " << row;
    ++row;
  }
}

// The agent logs these when it starts, and not what it says elsewhere.
TEST(JudgeNode, WhatBreaksPods) {
  std::string all;
  for (const auto& [says, change] : kNodeRows) {
    NodeFacts facts = good_node();
    change(facts);
    for (const Finding& one : breaking_pods(facts))
      if (all.find(one.check) == std::string::npos) all += (all.empty() ? "" : ", ") + one.check;
  }
  EXPECT_EQ(all, "/tmp, tasks, processes, limits, locked memory, host name, homes");
}

HeadFacts good_head() {
  HeadFacts facts;
  facts.data_dir = good_place("/var/lib/muster");
  facts.ports = {{.what = "--api", .address = "127.0.0.1:7117", .held = true}};
  facts.service = ServiceFacts{};
  facts.service->has_metrics = true;
  facts.service->backup_age_ms = kDay;
  facts.service->authority_left_ms = 300 * kDay;
  facts.limits = good_limits("the coordinator (pid 5)");
  return facts;
}

TEST(JudgeHead, Table) {
  using Change = Row<HeadFacts>;
  const Change rows[] = {
      {"", [](HeadFacts&) {}},
      {"problem configuration", [](HeadFacts& f) { f.config_error = "c.yaml:2: unknown key"; }},
      {"problem data-dir", [](HeadFacts& f) { f.data_dir.there = false; }},
      {"problem data-dir space", [](HeadFacts& f) { f.data_dir.free_bytes = 1u << 20; }},
      {"warning data-dir sync", [](HeadFacts& f) { f.data_dir.sync_us = 100'000; }},
      {"warning coordinator", [](HeadFacts& f) { f.service.reset(); }},
      {"warning version", [](HeadFacts& f) { f.outdated = true; }},
      {"unknown coordinator", [](HeadFacts& f) { f.service.reset(), f.not_seen = "no access"; }},
      {"unknown coordinator", [](HeadFacts& f) { f.service->reply.refused = "not you"; }},
      {"problem coordinator", [](HeadFacts& f) { f.service->reply.error = "no answer"; }},
      {"problem coordinator", [](HeadFacts& f) { f.service->reply.not_ready = "reading jobs"; }},
      {"", [](HeadFacts& f) { f.service->reply.follows = true; }},
      {"problem port --api",
       [](HeadFacts& f) { f.ports[0].held = false, f.ports[0].error = "not an address"; }},
      {"problem port --api",
       [](HeadFacts& f) {
         f.ports[0] = {.what = "--api", .address = "a:1", .error = "in use", .taken = true};
       }},
      {"unknown port --api, unknown coordinator",
       [](HeadFacts& f) {
         f.ports[0] = {.what = "--api", .address = "a:1", .error = "in use", .taken = true};
         f.service.reset(), f.not_seen = "no access";
       }},
      {"", [](HeadFacts& f) { f.ports[0].held = false; }},
      {"unknown backup", [](HeadFacts& f) { f.service->has_metrics = false; }},
      {"warning backup", [](HeadFacts& f) { f.service->backup_age_ms.reset(); }},
      {"warning backup", [](HeadFacts& f) { f.service->backup_age_ms = 3 * kDay; }},
      {"", [](HeadFacts& f) { f.service->authority_left_ms.reset(); }},
      {"warning authority", [](HeadFacts& f) { f.service->authority_left_ms = kDay; }},
      {"problem authority", [](HeadFacts& f) { f.service->authority_left_ms = -kDay; }},
      {"",
       [](HeadFacts& f) {
         f.service->store = StoreFacts{true, 2, 2};
       }},
      {"problem store",
       [](HeadFacts& f) {
         f.service->store = StoreFacts{false, 2, 2};
       }},
      {"warning standby",
       [](HeadFacts& f) {
         f.service->store = StoreFacts{true, 2, 1};
       }},
      {"problem --ca-cert", [](HeadFacts& f) { f.authority = CertificateFacts{.path = "/c"}; }},
      {"problem munge", [](HeadFacts& f) { f.munge = MungeFacts{.error = "no socket"}; }},
      {"warning open files", [](HeadFacts& f) { f.limits.hard_open_files = 1'024; }},
  };
  size_t row = 0;
  for (const auto& [says, change] : rows) {
    HeadFacts facts = good_head();
    change(facts);
    Findings found;
    judge_head(facts, found);
    EXPECT_EQ(amiss(found), says) << "row " << row;
    ++row;
  }
}

}  // namespace
}  // namespace muster::cli::doctor
