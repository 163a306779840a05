// kubectl's exec: which requests become WebSockets, what passes on their channels, and peers that
// break the protocol.
#include "core/pod_name.hpp"
#include "tests/unit/api/routes/server_fixture.hpp"

#include <algorithm>
#include <memory>

namespace muster::api::testing {
namespace {

using std::string_literals::operator""s;

constexpr const char* kV5 = "v5.channel.k8s.io";
constexpr char kBinary = 2, kClose = 8, kPing = 9;

std::string frame(char opcode, const std::string& payload, bool last = true) {
  std::string out(1, static_cast<char>((last ? 0x80 : 0) | opcode));
  if (payload.size() < 126) {
    out += static_cast<char>(0x80 | payload.size());
  } else {
    out += '\xff';
    for (int shift = 56; shift >= 0; shift -= 8)
      out += static_cast<char>(payload.size() >> shift & 0xff);
  }
  const std::string mask = "mask";
  out += mask;
  for (size_t i = 0; i < payload.size(); ++i) out += static_cast<char>(payload[i] ^ mask[i % 4]);
  return out;
}

class ExecStreamTest : protected AuditLines, public ServerTest {
 protected:
  ExecStreamTest()
      : ServerTest([this](ServerOptions& o) {
          o.roles = {{"hpc"}, {}, {}, {}};
          o.read_account = [](uid_t uid) {
            return Account{{uid, uid, "u" + std::to_string(uid)}, {"hpc"}};
          };
          o.audit = [this](const OrderedJson& object) { audited.push_back(dumped(object)); };
        }) {
    uid = 2001;
    const std::string job =
        R"({"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"j"},"spec":{"template":{"spec":)"
        R"({"restartPolicy":"Never","containers":[{"name":"main","command":["true"]},{"name":"b","command":["true"]}]}}}})";
    EXPECT_EQ(post(kJobs, job).code, 201);
    feed.create(100, 0, 1);
    const core::JobMeta& meta = view.job("default", "j")->job->object().meta;
    pod = core::pod_name(meta.name, meta.uid, false, {0, 0});
    path = kPods + "/" + pod + "/exec?container=main&command=sh&command=-c&command=a%20b";
    backend.hold_exec = true;
    backend.out = backend.err = "";
  }
  void begin() {
    feed.bind(100, {0, 0}, 7);
    feed.start(100, {0, 0});
  }
  static std::string upgrade(const std::string& protocols = kV5) {
    return "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
           "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: " +
           protocols + "\r\n";
  }
  // Opens a WebSocket, and waits for its head and for the first read of its output.
  void open(const std::string& more, const std::string& protocols = kV5) {
    hear(connect("GET " + path + more + " HTTP/1.1\r\nHost: 127.0.0.1:7117\r\n" +
                 upgrade(protocols) + "\r\n"));
    ASSERT_TRUE(until([&] {
      return !backend.exec_held.empty() && talk->client->raw.find("\r\n\r\n") != std::string::npos;
    })) << talk->client->raw;
  }
  void hear(kj::Own<Client> client) {
    // A connection that is closed with unread data ends with an error.
    auto reading =
        client->read().eagerlyEvaluate([&one = *client](kj::Exception&&) { one.ended = true; });
    talk.reset(new Talk{kj::mv(client), kj::mv(reading)});
  }
  void say(const std::string& bytes) {
    said.push_back(bytes);
    connections_.add(talk->client->stream->write(said.back().data(), said.back().size()));
  }
  // Answers the read that waits.
  void print(const ExecOutput& output) {
    ASSERT_TRUE(until([&] { return !backend.exec_held.empty(); }));
    auto done = std::move(backend.exec_held.front());
    backend.exec_held.pop_front();
    done(output);
  }
  // The payloads of the frames so far; that of a Close is "close" and its code.
  std::vector<std::string> heard() const {
    std::vector<std::string> all;
    size_t at = talk->client->raw.find("\r\n\r\n");
    if (at == std::string::npos) return all;
    for (at += 4; at + 2 <= talk->client->raw.size();) {
      const char opcode = static_cast<char>(talk->client->raw[at] & 15);
      size_t size = static_cast<unsigned char>(talk->client->raw[at + 1]), head = 2;
      if (size == 126) {
        size = static_cast<unsigned char>(talk->client->raw[at + 2]) << 8 |
               static_cast<unsigned char>(talk->client->raw[at + 3]);
        head = 4;
      }
      const std::string payload = talk->client->raw.substr(at + head, size);
      if (opcode == kClose)
        all.push_back("close " + std::to_string(static_cast<unsigned char>(payload[0]) << 8 |
                                                static_cast<unsigned char>(payload[1])));
      else
        all.push_back(opcode == kBinary ? payload : "opcode " + std::to_string(opcode) + payload);
      at += head + size;
    }
    return all;
  }
  bool gone() {
    return until([&] { return talk->client->ended && !backend.session; });
  }

  std::string pod, path;
  struct Talk {
    kj::Own<Client> client;
    kj::Promise<void> reading;
  };
  std::unique_ptr<Talk> talk;
  std::deque<std::string> said;
};

TEST_F(ExecStreamTest, RequestsThatAreNotUpgradedSayWhy) {
  const auto says = [this](const std::string& url, const std::string& headers = upgrade(),
                           const char* method = "GET") {
    const Answer a = call(request(method, url, headers));
    return std::to_string(a.code) + " " + a.json().value("message", "");
  };
  const std::string both = path + "&stdout=true&stderr=true";
  EXPECT_EQ(says(both), "400 pod " + pod + " does not have a host assigned");
  feed.bind(100, {0, 0}, 7);
  EXPECT_EQ(says(both), "409 pod " + pod + " has not started yet");
  feed.start(100, {0, 0});
  EXPECT_EQ(says(kPods + "/none/exec?command=ls&stdout=1"), R"(404 pods "none" not found)");
  EXPECT_EQ(says(path), "400 you must specify at least 1 of stdin, stdout, stderr");
  EXPECT_EQ(says(kPods + "/" + pod + "/exec?container=main&stdout=true"),
            "400 you must specify at least one command for the container");
  EXPECT_EQ(says(kPods + "/" + pod + "/exec?command=ls&stdout=true"),
            "400 a container name must be specified for pod " + pod + ", choose one of: [main b]");
  EXPECT_EQ(says(kPods + "/" + pod + "/exec?command=ls&stdout=true&container=c"),
            "400 container c is not valid for pod " + pod);
  for (const char* method : {"GET", "POST"})
    EXPECT_EQ(says(both, "", method), "400 Upgrade request required");
  EXPECT_NE(says(both, "Upgrade: SPDY/3.1\r\n", "POST").find("kubectl 1.31 or later"),
            std::string::npos);
  EXPECT_NE(says(both, "Upgrade: websocket\r\n").find("Sec-WebSocket-Version: 13"),
            std::string::npos);
  EXPECT_NE(says(both, upgrade("v1.channel.k8s.io")).find("v4.channel.k8s.io"), std::string::npos);
  uid = 2002;
  EXPECT_EQ(call(request("GET", both, upgrade())).code, 403);
  EXPECT_FALSE(backend.session) << "none has started a command";
}

TEST_F(ExecStreamTest, StreamsResultAndCloseArriveInOrder) {
  begin();
  open("&stdout=true&stderr=true");
  EXPECT_NE(talk->client->raw.find("101 Switching Protocols"), std::string::npos);
  EXPECT_NE(talk->client->raw.find("Sec-WebSocket-Protocol: v5.channel.k8s.io\r\n"),
            std::string::npos);
  ASSERT_TRUE(backend.session);
  EXPECT_EQ(backend.session->command, (std::vector<std::string>{"sh", "-c", "a b"}));
  EXPECT_EQ(backend.session->session.caller, 2001u);
  EXPECT_FALSE(backend.session->input);
  print({.out = "some", .err = "oops"});
  print({.out = "\xff\0more"s});
  print({.ended = true, .exit_code = 7});
  ASSERT_TRUE(until([&] { return heard().size() == 6; })) << talk->client->raw;
  const auto all = heard();
  EXPECT_EQ(all[0], "\1");
  EXPECT_EQ(all[1], "\1some");
  EXPECT_EQ(all[2], "\2oops");
  EXPECT_EQ(all[3], "\1\xff\0more"s);
  EXPECT_EQ(
      all[4],
      "\3"
      R"({"metadata":{},"status":"Failure","message":"command terminated with non-zero exit code: )"
      R"(exit code 7","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"7"}]}})");
  EXPECT_EQ(all[5], "close 1000");
  EXPECT_FALSE(talk->client->ended) << "until the client closes, too";
  say(frame(kClose, "\x03\xe8"s));
  EXPECT_TRUE(gone());
  std::vector<std::string> of_exec;
  for (const std::string& line : audited)
    if (line.find(R"("subresource":"exec")") != std::string::npos) of_exec.push_back(line);
  ASSERT_EQ(of_exec.size(), 2u) << "its start and its end";
  EXPECT_NE(of_exec[0].find(R"("code":101)"), std::string::npos) << of_exec[0];
  EXPECT_NE(of_exec[1].find(R"("code":200)"), std::string::npos) << of_exec[1];
}

TEST_F(ExecStreamTest, CommandJoinsTheChosenContainer) {
  begin();
  path = kPods + "/" + pod + "/exec?container=b&command=ls";
  open("&stdout=true");
  ASSERT_TRUE(backend.session);
  EXPECT_EQ(backend.session->container, 1);
}

TEST_F(ExecStreamTest, StreamsThatAreNotWantedAreLeftOut) {
  begin();
  open("&stderr=1", "v1.channel.k8s.io, v4.channel.k8s.io");
  EXPECT_NE(talk->client->raw.find("Sec-WebSocket-Protocol: v4.channel.k8s.io\r\n"),
            std::string::npos);
  print({.out = "some", .err = "oops"});
  print({.ended = true, .exit_code = 127, .message = "exec sh: No such file"});
  ASSERT_TRUE(until([&] { return heard().size() == 5; })) << talk->client->raw;
  EXPECT_EQ(heard()[0], "\2");
  EXPECT_EQ(heard()[1], "\2oops");
  EXPECT_EQ(heard()[2], "\2exec sh: No such file\n");
  EXPECT_NE(heard()[3].find(R"("message":"127")"), std::string::npos);
}

TEST_F(ExecStreamTest, CommandThatCannotRunOrIsLostIsAnInternalError) {
  begin();
  backend.refuse = Error{Errc::conflict, "the pod has ended", {}};
  hear(connect("GET " + path + "&stdout=true HTTP/1.1\r\nHost: 127.0.0.1:7117\r\n" + upgrade() +
               "\r\n"));
  ASSERT_TRUE(until([&] { return heard().size() == 3; })) << talk->client->raw;
  EXPECT_NE(heard()[1].find("Internal error occurred: the pod has ended"), std::string::npos);
  backend.refuse.reset();
  open("&stdout=true");
  print({.ended = true, .exit_code = 255, .message = "its keeper died"});
  ASSERT_TRUE(until([&] { return heard().size() == 3; })) << talk->client->raw;
  EXPECT_NE(heard()[1].find("its keeper died"), std::string::npos);
  EXPECT_EQ(heard()[1].find("NonZeroExitCode"), std::string::npos);
}

TEST_F(ExecStreamTest, InputAndItsEndReachTheCommand) {
  begin();
  open("&stdin=true&stdout=true");
  EXPECT_TRUE(backend.session->input);
  say(frame(kBinary, "\0in\xff\0"s) + frame(kPing, "p") + frame(kBinary, "\7for no channel"));
  ASSERT_TRUE(until([&] { return backend.written.has_value(); }));
  EXPECT_EQ(backend.written->data, "in\xff\0"s);
  EXPECT_FALSE(backend.written->eof);
  ASSERT_TRUE(until([&] { return heard().size() == 2; }));
  EXPECT_EQ(heard()[1], "opcode 10p") << "the ping's answer";
  // In fragments.
  say(frame(kBinary, "\0a"s, false) + frame(0, "b", false) + frame(0, "c"));
  ASSERT_TRUE(until([&] { return backend.written->offset == 4; }));
  EXPECT_EQ(backend.written->data, "abc");
  say(frame(kBinary, "\xff\0"s));
  ASSERT_TRUE(until([&] { return backend.written->eof; }));
  EXPECT_EQ(backend.written->offset, 7u);
  say(frame(kClose, "\x03\xe8"s));
  EXPECT_TRUE(gone());
}

TEST_F(ExecStreamTest, EachPingOfAQuietSessionIsAnswered) {
  begin();
  open("&stderr=true");
  for (const char* ping : {"a", "b", "c"}) {
    say(frame(kPing, ping));
    const std::string answer = "opcode 10" + std::string(ping);
    const auto answered = [&] {
      const auto all = heard();
      return std::find(all.begin(), all.end(), answer) != all.end();
    };
    ASSERT_TRUE(until([&] {
      if (!backend.exec_held.empty()) print({});  // no output for some seconds
      return answered();
    })) << ping;
  }
}

TEST_F(ExecStreamTest, OldProtocolHasNoEndOfInput) {
  begin();
  open("&stdin=true&stdout=true", "v4.channel.k8s.io");
  say(frame(kBinary, "\xff\0"s) + frame(kBinary, "\0x"s));
  ASSERT_TRUE(until([&] { return backend.written.has_value(); }));
  EXPECT_EQ(backend.written->data, "x");
  EXPECT_FALSE(backend.written->eof);
}

TEST_F(ExecStreamTest, TerminalOpensWithTheClientsWindow) {
  begin();
  open("&stdin=true&stdout=true&tty=true");
  EXPECT_TRUE(backend.session->terminal);
  say(frame(kBinary, "\4{\"Width\":80,\"Height\":24}"));
  ASSERT_TRUE(until([&] { return backend.written.has_value(); }));
  EXPECT_EQ(backend.written->data, "\1\0\11\0\x18\0\x50xterm"s);
  say(frame(kBinary, "\4{\"Width\":-1}") + frame(kBinary, "\xff\0"s) + frame(kBinary, "\0ls\n"s));
  ASSERT_TRUE(until([&] { return backend.written->offset == 12; }));
  EXPECT_EQ(backend.written->data, "\2\0\3ls\n"s);
  say(frame(kBinary, "\4{\"Width\":90,\"Height\":30}"));
  ASSERT_TRUE(until([&] { return backend.written->offset == 18; }));
  EXPECT_EQ(backend.written->data, "\3\0\4\0\x1e\0\x5a"s);
  EXPECT_FALSE(backend.written->eof);
}

TEST_F(ExecStreamTest, PeerThatBreaksTheProtocolIsCutAndItsCommandEnded) {
  begin();
  const std::string huge("\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xffmask", 14);
  for (const std::string& bad :
       {frame(kBinary, std::string(300 << 10, 'x')), huge, frame(0, "no beginning"),
        frame(kBinary, "a", false) + frame(kBinary, "b"), frame(kPing, "x", false),
        frame(3, "unknown")}) {
    open("&stdin=true&stdout=true");
    ASSERT_TRUE(backend.session);
    say(bad);
    EXPECT_TRUE(gone());
    backend.exec_held.clear();
  }
  // Frames without end that belong to no message.
  for (const std::string& one : {frame(kPing, ""), frame(0, "", false), std::string("\x8a\0", 2)}) {
    open("&stdin=true&stdout=true");
    std::string flood = frame(one[0] == 0 ? kBinary : kPing, "", one[0] != 0);
    while (flood.size() < 2 << 20) flood += one;
    say(flood);
    EXPECT_TRUE(gone());
    backend.exec_held.clear();
  }
  // Not even a Close.
  open("&stdin=true&stdout=true");
  talk.reset();
  EXPECT_TRUE(until([&] { return !backend.session; }));
}

TEST_F(ExecStreamTest, CommandOfAClientThatStopsReadingEndsWithItsConnection) {
  begin();
  open("&stdout=true");
  talk->reading = nullptr;
  print({.out = std::string(64 << 10, 'x')});
  EXPECT_TRUE(backend.session);
  talk.reset();
  EXPECT_TRUE(until([&] { return !backend.session; }));
}

}  // namespace
}  // namespace muster::api::testing
