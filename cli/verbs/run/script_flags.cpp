#include "cli/verbs/run/script_flags.hpp"

#include "client/inputs/sbatch_options.hpp"
#include "client/settings/files.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace muster::cli {
namespace {

// The flags that say what the indexes of a command are. Only one of them can be given.
constexpr const char* kIndexFlags[] = {"--completions", "--array", "--each", "--each-csv",
                                       "--commands"};
constexpr size_t kReadMax = 1 << 20;  // enough to see that a script is too long

bool of_indexes(const TypedFlag& flag) {
  return std::ranges::find(kIndexFlags, flag.name) != std::end(kIndexFlags);
}

// The text of the file, up to kReadMax bytes if it can be read again. Absent: it cannot be read.
std::optional<std::string> text_in(const std::string& file, bool again) {
  if (!again) {
    auto text = read_file(file);
    return text ? std::optional(std::move(*text)) : std::nullopt;
  }
  std::ifstream in(file, std::ios::binary);
  std::string text(kReadMax, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.bad() || !in.is_open()) return std::nullopt;
  text.resize(static_cast<size_t>(in.gcount()));
  return text;
}

std::string value_of(const TypedFlag& flag) {
  if (flag.words.size() > 1) return flag.words[1];
  const std::string& word = flag.words.front();
  const size_t equals = word.find('=');
  if (word.starts_with("--")) return equals == std::string::npos ? "" : word.substr(equals + 1);
  return word.substr(std::min<size_t>(2, word.size()));
}

std::string listed_lines(const std::vector<size_t>& lines) {
  std::string text = lines.size() == 1 ? "line " : "lines ";
  for (size_t i = 0; i < lines.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(lines[i]);
  return text;
}

// Whether it is -o with a file. Otherwise -o says how a manifest is printed.
bool is_short_output(const TypedFlag& flag) {
  constexpr std::string_view kForms[] = {"yaml", "json", "name"};
  return flag.name == "-o" && std::ranges::find(kForms, value_of(flag)) == std::end(kForms);
}

// -o and --output are the same flag.
void join_outputs(const std::vector<TypedFlag>& typed, ScriptFlags& script) {
  const bool in_lines = std::ranges::any_of(script.lines, [](const ScriptFlags::Line& line) {
    return std::ranges::any_of(line.words,
                               [](const std::string& word) { return word.starts_with("-o"); });
  });
  script.yields["-o"].insert("--output");
  if (in_lines || std::ranges::any_of(typed, is_short_output))
    script.yields["--output"].insert("-o");
}

ReadScript read_script(const std::string& file, const std::vector<TypedFlag>& typed, bool files,
                       RunOptions& o) {
  const bool indexes = std::ranges::any_of(typed, of_indexes);
  struct stat found {};
  const bool there = file != "-" && stat(file.c_str(), &found) == 0;
  const bool regular = there && S_ISREG(found.st_mode);
  if ((file != "-" && !there) || (!regular && (indexes || S_ISDIR(found.st_mode)))) return {};
  auto text = text_in(file, regular);
  if (!text) return {};
  const bool executable = file.find('/') != std::string::npos && access(file.c_str(), X_OK) == 0;
  if (!is_batch_script(*text) || (indexes && executable && !has_options(*text))) {
    if (!regular) o.text = std::move(*text);
    return {};
  }
  const std::string shown = shown_path(file);
  auto script = parse_batch_script(shown, *text);
  if (!script) return Usage{script.error().message};
  std::string cpus;
  for (const OptionLine& line : script->muster)
    for (size_t i = 0; i < line.words.size(); ++i)
      for (const std::string name : {"--cpus", "-c"}) {
        if (line.words[i] == name && i + 1 < line.words.size()) cpus = line.words[i + 1];
        if (line.words[i].starts_with(name + "=")) cpus = line.words[i].substr(name.size() + 1);
      }
  for (const TypedFlag& flag : typed)
    if (flag.name == "--cpus") cpus = value_of(flag);
  auto sbatch = read_sbatch(shown, script->sbatch, cpus);
  if (!sbatch) return Usage{sbatch.error().message};
  for (const auto& [flag, value] :
       {std::pair("--output", &sbatch->output), std::pair("--error", &sbatch->error)}) {
    if (!*value) continue;
    if (files)
      sbatch->flags.push_back(std::string(flag) + "=" + **value);
    else
      sbatch->without_meaning.emplace_back(flag);
  }
  if (files)
    sbatch->flags.insert(sbatch->flags.end(), sbatch->notices.begin(), sbatch->notices.end());
  else if (!sbatch->notices.empty())
    sbatch->without_meaning.emplace_back("--mail-type");
  // What runs here starts now.
  if (!files)
    std::erase_if(sbatch->flags, [&sbatch](const std::string& flag) {
      const std::string name = flag.substr(0, flag.find('='));
      const bool later = name == "--begin" || name == "--hold";
      if (later) sbatch->without_meaning.push_back(name);
      return later;
    });
  o.partitions = std::move(sbatch->partitions);
  std::string unused;
  for (const std::string& option : sbatch->without_meaning)
    unused += (unused.empty() ? "" : ", ") + option;
  if (!unused.empty()) o.warnings.push_back(shown + ": ignored: " + unused);
  if (!script->late.empty())
    o.warnings.push_back(
        shown + ": options after the first command are ignored: " + listed_lines(script->late));
  ScriptFlags out{.file = shown, .first = std::move(sbatch->flags), .lines = {}, .yields = {}};
  for (OptionLine& line : script->muster) out.lines.push_back({line.number, std::move(line.words)});
  for (const char* flag : kIndexFlags)
    out.yields[flag].insert(std::begin(kIndexFlags), std::end(kIndexFlags));
  join_outputs(typed, out);
  out.yields["--unique"] = {"--name", "--replace"};  // it goes with the name of #SBATCH
  o.script = std::move(*script);
  return out;
}

}  // namespace

std::function<ReadScript(const std::string& file, const std::vector<TypedFlag>& typed)>
script_reader(std::shared_ptr<RunOptions> o, bool files) {
  return [o = std::move(o), files](const std::string& file, const std::vector<TypedFlag>& typed) {
    return read_script(file, typed, files, *o);
  };
}

bool is_script_file(const std::string& file) {
  struct stat found {};
  if (stat(file.c_str(), &found) != 0 || !S_ISREG(found.st_mode)) return false;
  const auto text = text_in(file, true);
  return text && is_batch_script(*text);
}

}  // namespace muster::cli
