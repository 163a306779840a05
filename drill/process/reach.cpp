#include "drill/process/reach.hpp"

#include "client/terminal/json.hpp"
#include "client/terminal/text.hpp"
#include "drill/process/process.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

namespace muster::cli::drill {
namespace {

constexpr Millis kAskMax = 60'000;  // including ssh

Result<Json> read_answer(const std::string& text) {
  const Json json = read_json(text);
  if (!json.is_object()) return unavailable(text.empty() ? "no answer" : cut(one_line(text), 300));
  if (const std::string why = text_at(json, {"error"}); !why.empty()) return unavailable(why);
  return json;
}

}  // namespace

Status check(const Hooks& hooks) {
  const auto needs = [](const char* flag, const std::string& text, const char* placeholder,
                        const char* example) -> Status {
    if (text.empty() || text.find(placeholder) != std::string::npos) return Nothing{};
    return invalid(std::string(flag) + " `" + text + "`: " + placeholder + " is missing; like `" +
                   example + "`");
  };
  for (const char* placeholder : {"{node}", "{}"})
    if (Status s = needs("--on-node", hooks.on_node, placeholder, "ssh {node} {}"); !s) return s;
  if (Status s =
          needs("--switch", hooks.switch_to, "{binary}", "ln -sfn {binary} /opt/muster/muster");
      !s)
    return s;
  return needs("--restore", hooks.restore, "{backup}", "/usr/local/sbin/restore-muster {backup}");
}

std::string filled(std::string text, const std::string& placeholder, const std::string& value) {
  for (size_t at = 0; (at = text.find(placeholder, at)) != std::string::npos; at += value.size())
    text.replace(at, placeholder.size(), value);
  return text;
}

bool plain(const std::string& word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("._/:=,@+-").find(static_cast<char>(c)) != std::string_view::npos;
  });
}

std::string Reach::hand(const DrillNode& node, const std::string& verb,
                        const std::string& more) const {
  return executable_ + " drill hand " + verb + " " + node.uid + (more.empty() ? "" : " " + more);
}

std::vector<std::string> Reach::words(const DrillNode& node, const std::string& command) const {
  const std::string here = filled(command, "{node}", node.name);
  if (node.here) return {"/bin/sh", "-c", here};
  return {"/bin/sh", "-c", filled(filled(hooks_.on_node, "{node}", node.name), "{}", here)};
}

Status Reach::find(DrillNode& node) const {
  for (const std::string& word : {executable_, node.name, node.uid})
    if (!plain(word)) return invalid("`" + word + "` cannot be passed through a shell");
  node.here = true;
  auto seen = ask(node, "look");
  std::string why = seen ? "" : seen.error().message;
  if (!seen && !hooks_.on_node.empty()) {
    node.here = false;
    seen = ask(node, "look");
    if (!seen) why = "--on-node: " + seen.error().message;
  } else if (!seen) {
    why += "; with --on-node 'ssh {node} {}' the drill reaches other machines";
  }
  if (!seen) return unavailable("node " + node.name + ": " + why);
  node.seen = std::move(*seen);
  return Nothing{};
}

Result<Json> Reach::ask(const DrillNode& node, const std::string& verb,
                        const std::string& more) const {
  auto command = Command::start(words(node, hand(node, verb, more)));
  if (!command) return command.error();
  command->end_input();
  std::string text;
  for (const Millis until = boot_now() + kAskMax; boot_now() < until;) {
    auto line = command->line(until - boot_now(), go_on_);
    if (!line) break;
    text = std::move(*line);
    if (text.starts_with("{")) break;  // ssh and login shells may print other lines first
  }
  auto done = command->finish(kAskMax, go_on_);
  if (!done && !text.starts_with("{")) return done.error();
  return read_answer(text);
}

Result<Command> Reach::begin(const DrillNode& node, const std::string& verb) const {
  return Command::start(words(node, hand(node, verb, "")));
}

Result<Json> Reach::answer(Command& command, Millis patience_ms, bool stubborn) const {
  std::string text;
  for (const Millis until = boot_now() + patience_ms; boot_now() < until;) {
    auto line = command.line(until - boot_now(), stubborn ? Command::GoOn() : go_on_);
    if (!line) break;
    text = std::move(*line);
    if (text.starts_with("{")) break;
  }
  return read_answer(text);
}

Status Reach::run(const DrillNode* node, const std::string& command, Millis patience_ms,
                  bool stubborn) const {
  std::vector<std::string> what =
      node != nullptr ? words(*node, command) : std::vector<std::string>{"/bin/sh", "-c", command};
  auto done = output_of(std::move(what), "", patience_ms, stubborn ? Command::GoOn() : go_on_);
  if (done) return Nothing{};
  return unavailable("`" + command + "`: " + done.error().message);
}

}  // namespace muster::cli::drill
