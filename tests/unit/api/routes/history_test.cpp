// The history of jobs and reports, as each user sees them.
#include "tests/unit/api/routes/server_fixture.hpp"

namespace muster::api::testing {
namespace {

constexpr uid_t kHistoryAnn = 2001, kBen = 2002, kOpal = 2003;
const std::string kOwn = "/apis/muster.dev/v1/";

Account history_account(uid_t uid) {
  Account account{{uid, uid, "u" + std::to_string(uid)}, {"hpc"}};
  if (uid == kOpal) account.groups.push_back("ops");
  return account;
}

class HistoryRoutesTest : public ServerTest {
 protected:
  explicit HistoryRoutesTest(bool private_jobs = false)
      : ServerTest([private_jobs](ServerOptions& o) {
          o.roles = {{"hpc"}, {"ops"}, {}, {}};
          o.access.private_jobs = private_jobs;
          o.read_account = history_account;
        }) {
    past(1, kHistoryAnn, "sweep", core::PastState::complete);
    past(2, kBen, "train", core::PastState::failed);
    past(3, kHistoryAnn, "late", core::PastState::complete);
    past(5, kHistoryAnn, "train", core::PastState::cancelled, "lab");
  }

  void past(JobId id, uid_t owner, const std::string& name, core::PastState state,
            const std::string& ns = "default") {
    core::HistoryEntry entry{.id = id, .ns = ns, .name = name, .uid = uid_of(static_cast<int>(id))};
    entry.owner = owner;
    entry.user = "u" + std::to_string(owner);
    entry.queue = "default";
    entry.state = state;
    entry.created_ms = kStart + static_cast<Millis>(id) * 1000;
    entry.ended = entry.created_ms + 500;
    entry.attempts = 2;
    entry.used = {1'500'000, 0, 4096};
    backend.past[id] = entry;
  }
  Answer as(uid_t who, const std::string& path) {
    uid = who;
    return get(kOwn + path);
  }
  // "1 sweep, 3 late", of all pages.
  std::string listed(uid_t who, const std::string& query, const std::string& ns = "") {
    std::string text, token;
    do {
      const Answer page = as(who, (ns.empty() ? "" : "namespaces/" + ns + "/") + "history?" +
                                      query + (token.empty() ? "" : "&continue=" + token));
      if (page.code != 200) return page.body;
      const Json list = page.json();
      EXPECT_EQ(list["kind"], "HistoryEntryList");
      for (const Json& item : list["items"])
        text += (text.empty() ? "" : ", ") + item["id"].get<std::string>() + " " +
                item["name"].get<std::string>();
      token = list["metadata"].value("continue", "");
    } while (!token.empty());
    return text;
  }
  // "u2001=3", of each item.
  std::string reported(uid_t who, const std::string& query) {
    const Answer page = as(who, "report?" + query);
    if (page.code != 200) return page.body;
    std::string text;
    const Json list = page.json();
    for (const Json& item : list["items"]) {
      text += text.empty() ? "" : ", ";
      for (const auto& [column, value] : item["by"].items()) text += value.get<std::string>() + "=";
      text += item["jobs"].dump();
    }
    return text;
  }
};

class PrivateHistoryTest : public HistoryRoutesTest {
 protected:
  PrivateHistoryTest() : HistoryRoutesTest(true) {}
};

TEST_F(HistoryRoutesTest, P11UsersSeeTheirOwnJobsOnly) {
  EXPECT_EQ(listed(kHistoryAnn, ""), "1 sweep, 3 late, 5 train");
  EXPECT_EQ(listed(kBen, ""), "2 train");
  EXPECT_EQ(listed(kOpal, ""), "1 sweep, 2 train, 3 late, 5 train");
  EXPECT_EQ(listed(kBen, "user=u2001"), "") << "asking for another user shows nothing";
  EXPECT_EQ(listed(kOpal, "user=u2002"), "2 train");
  EXPECT_EQ(reported(kHistoryAnn, "by=user"), "u2001=3");
  EXPECT_EQ(reported(kBen, "by=user"), "u2002=1");
  EXPECT_EQ(reported(kOpal, "by=user"), "u2001=3, u2002=1");
  EXPECT_EQ(reported(kBen, "by=user&user=u2001"), "");
}

TEST_F(PrivateHistoryTest, P11UsersSeeTheirOwnJobsOnly) {
  EXPECT_EQ(listed(kBen, ""), "2 train");
  EXPECT_EQ(reported(kBen, ""), "1");
}

TEST_F(HistoryRoutesTest, P11AttemptsAreTheOwnersToo) {
  const std::string path = "namespaces/default/history/1/attempts";
  EXPECT_EQ(as(kHistoryAnn, path).code, 200);
  EXPECT_EQ(as(kOpal, path).code, 200);
  EXPECT_EQ(as(kBen, path).code, 404);
  EXPECT_EQ(as(kHistoryAnn, "namespaces/lab/history/1/attempts").code, 404)
      << "of another namespace";
  EXPECT_EQ(as(kHistoryAnn, "namespaces/default/history/4/attempts").code, 404);
  EXPECT_EQ(as(kHistoryAnn, "namespaces/default/history/x/attempts").code, 404);
}

TEST_F(HistoryRoutesTest, PagesHaveEachJobOnce) {
  // Jobs that have not ended come from the read model, in their places.
  feed.admit(4, make_job("running", uid_of(4)));
  feed.admit(9, make_job("last", uid_of(9)));
  for (const char* limit : {"1", "2", "100"})
    EXPECT_EQ(listed(kOpal, std::string("limit=") + limit),
              "1 sweep, 2 train, 3 late, 4 running, 5 train, 9 last");
  // One that has ended since is still active in the read model, and has an entry.
  past(4, kHistoryAnn, "running", core::PastState::complete);
  EXPECT_EQ(listed(kOpal, "limit=2"), "1 sweep, 2 train, 3 late, 4 running, 5 train, 9 last");
  EXPECT_EQ(listed(kHistoryAnn, ""), "1 sweep, 3 late, 4 running, 5 train")
      << "and its owner is known";
}

TEST_F(HistoryRoutesTest, NewestOfAPage) {
  const Json list = as(kOpal, "history?newest=2&name=*a*").json();
  ASSERT_EQ(list["items"].size(), 2u);
  EXPECT_EQ(list["items"][0]["id"], "3");
  EXPECT_EQ(list["items"][1]["id"], "5");
  EXPECT_EQ(list["metadata"]["skipped"], 1) << "train of another user, and not sweep";
  EXPECT_EQ(as(kOpal, "history?newest=0").code, 400);
}

TEST_F(HistoryRoutesTest, FiltersCanBeCombined) {
  EXPECT_EQ(listed(kOpal, "", "lab"), "5 train");
  EXPECT_EQ(listed(kOpal, "name=train"), "2 train, 5 train");
  EXPECT_EQ(listed(kOpal, "name=s*,l?te"), "1 sweep, 3 late");
  EXPECT_EQ(listed(kOpal, "state=failed,Cancelled&name=train", "default"), "2 train");
  EXPECT_EQ(listed(kOpal, "queue=gpu"), "");
  EXPECT_EQ(listed(kOpal, "uid=" + uid_of(3)), "3 late");
  EXPECT_EQ(listed(kOpal, "since=2023-11-14T22:13:23Z&until=2023-11-14T22:13:24Z"), "3 late");
  backend.past[3].removal = core::Removal::expired;
  EXPECT_EQ(listed(kOpal, "state=Expired"), "3 late");
}

TEST_F(HistoryRoutesTest, ReportsAddUp) {
  EXPECT_EQ(reported(kOpal, "by=namespace,state"),
            "default=Complete=2, default=Failed=1, lab=Cancelled=1");
  EXPECT_EQ(reported(kOpal,
                     "by=span&bounds=2023-11-14T22:13:20Z,2023-11-14T22:13:22Z,"
                     "2023-11-14T22:13:25Z"),
            "0=1, 1=2")
      << "spans end before their bounds, and what is outside counts nowhere";
  const Json sum = as(kOpal, "namespaces/default/report").json()["items"][0];
  EXPECT_EQ(sum["attempts"], 6);
  EXPECT_EQ(sum["usage"]["userSeconds"], 4.5);
  EXPECT_EQ(sum["usage"]["peakMemoryBytes"], 4096);
}

TEST_F(HistoryRoutesTest, RefusesWhatItCannotRead) {
  auto refused = [this](const std::string& path, const std::string& why) {
    const Answer answer = as(kOpal, path);
    EXPECT_EQ(answer.code, 400) << path;
    EXPECT_NE(answer.body.find(why), std::string::npos) << answer.body;
  };
  refused("history?state=done", R"(state: \"done\" is not one of Pending, Held)");
  refused("history?limit=0", "limit: not a number above 0");
  refused("history?continue=x", "continue: not a token of this server");
  refused("history?since=yesterday", "since: \\\"yesterday\\\" is not an instant");
  refused("report?by=color", "by: \\\"color\\\" is not one of user, group");
  refused("report?bounds=2023-11-14T22:13:20Z", "bounds: must be 2 to 1001 instants");
  refused("report?bounds=2023-11-14T22:13:20Z,2023-11-14T22:13:20Z", "is not after the one before");
  uid = 0;  // an admin, who may do anything
  EXPECT_EQ(call(request("DELETE", kOwn + "history")).code, 405);
}

TEST_F(HistoryRoutesTest, SaysThatThereIsNone) {
  backend.refuse = Backend::no_history();
  const Answer answer = as(kOpal, "history");
  EXPECT_EQ(answer.code, 404);
  EXPECT_NE(answer.body.find("--history-max 0"), std::string::npos) << answer.body;
}

}  // namespace
}  // namespace muster::api::testing
