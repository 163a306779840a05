#include "client/inputs/sbatch_options.hpp"

#include "client/documents/manifests.hpp"
#include "client/inputs/inputs.hpp"
#include "client/inputs/resources.hpp"
#include "client/settings/submitter.hpp"
#include "client/terminal/text.hpp"
#include "core/spec/values/mail.hpp"
#include "core/spec/values/quantity.hpp"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <utility>

namespace muster::cli {
namespace {

// The options of one script, by their long names.
struct Seen {
  SbatchOptions out;
  std::map<std::string, std::string> flags;  // of muster, by name
  std::set<std::string> unused;
  std::string memory_per_cpu;
  std::string mail_to;
  bool mail_at_end = false, mail_at_failure = false;

  void has_no_meaning(const std::string& option) {
    if (unused.insert(option).second) out.without_meaning.push_back(option);
  }
};

// Reads the value of an option. The error says what would be right.
using Reader = Status (*)(const std::string& value, Seen& seen);

std::vector<std::string> parts_of(const std::string& text, char between) {
  std::vector<std::string> parts;
  for (size_t from = 0; from <= text.size();) {
    const size_t end = std::min(text.find(between, from), text.size());
    parts.push_back(text.substr(from, end - from));
    from = end + 1;
  }
  return parts;
}

constexpr size_t kSizeDigits = 12;  // so that a product with a number of CPUs is one, too

// A size of memory as a quantity: "4000" and "4000M" are MiB. Empty: not a size.
std::string memory_of(const std::string& value) {
  const size_t digits = std::min(value.find_first_not_of("0123456789"), value.size());
  std::string unit = value.substr(digits);
  if (unit.size() == 2 && std::toupper(static_cast<unsigned char>(unit[1])) == 'B') unit.pop_back();
  if (unit.empty()) unit = "M";
  const char letter = static_cast<char>(std::toupper(static_cast<unsigned char>(unit[0])));
  if (digits == 0 || digits > kSizeDigits || unit.size() != 1 ||
      std::string_view("KMGT").find(letter) == std::string::npos)
    return "";
  return value.substr(0, digits) + letter + "i";
}

Status read_memory_limit(const std::string& value, Seen& seen) {
  const std::string amount = memory_of(value);
  if (amount.empty()) return invalid("must be a size such as 4000 (MiB) or 4G");
  seen.memory_per_cpu.clear();
  seen.flags.erase("--mem");
  if (amount.find_first_not_of('0') == amount.size() - 2)
    seen.has_no_meaning("--mem=0");  // all of the node's
  else
    seen.flags["--mem"] = amount;
  return Nothing{};
}

Status read_memory_per_cpu(const std::string& value, Seen& seen) {
  const std::string amount = memory_of(value);
  if (amount.empty()) return invalid("must be a size such as 4000 (MiB) or 4G");
  seen.memory_per_cpu = amount;
  seen.flags.erase("--mem");
  return Nothing{};
}

// Minutes, M:S, H:M:S, D-H, D-H:M or D-H:M:S. nullopt: not a time.
std::optional<int64_t> seconds_of(std::string_view text) {
  constexpr int64_t kPartMax = 100'000'000;
  const size_t dash = text.find('-');
  const bool has_days = dash != std::string_view::npos;
  std::vector<int64_t> parts;
  for (const std::string& part : parts_of(std::string(text.substr(has_days ? dash + 1 : 0)), ':')) {
    const auto number = whole_number(part);
    if (!number || *number > kPartMax) return std::nullopt;
    parts.push_back(*number);
  }
  if (parts.size() > 3) return std::nullopt;
  const bool from_hours = has_days || parts.size() == 3;
  if (!from_hours) parts.insert(parts.begin(), 0);
  parts.resize(3);
  const auto days = has_days ? whole_number(text.substr(0, dash)) : 0;
  if (!days || *days > kPartMax) return std::nullopt;
  return ((*days * 24 + parts[0]) * 60 + parts[1]) * 60 + parts[2];
}

Status read_time_limit(const std::string& value, Seen& seen) {
  std::string lower = value;
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  seen.flags.erase("--time");
  if (lower == "infinite" || lower == "unlimited" || lower == "-1") return Nothing{};
  const auto seconds = seconds_of(value);
  if (!seconds)
    return invalid("must be a time such as 90 (minutes), 1:30:00 (hours) or 2-12 (days and hours)");
  if (*seconds > 0) seen.flags["--time"] = std::to_string(*seconds) + "s";
  return Nothing{};
}

Status read_array(const std::string& value, Seen& seen) {
  int32_t at_once = 0;
  if (auto inputs = array_inputs(value, at_once); !inputs) return inputs.error();
  seen.flags["--array"] = value;
  return Nothing{};
}

Status read_cpu_count(const std::string& value, Seen& seen) {
  const auto count = whole_number(value);
  if (!count || *count == 0) return invalid("must be a number above 0");
  seen.flags["--cpus"] = value;
  return Nothing{};
}

// "2", "a100:2": the kind of GPU is a label of nodes here.
Status read_gpu_count(const std::string& value, Seen& seen) {
  const size_t colon = value.rfind(':');
  const auto count = whole_number(colon == std::string::npos ? value : value.substr(colon + 1));
  if (!count) return invalid("must be a number of GPUs, such as 1");
  if (colon != std::string::npos)
    seen.has_no_meaning("the kind of GPU, " + value.substr(0, colon) + " (see --node-selector)");
  if (*count > 0)
    seen.flags["--gpus"] = std::to_string(*count);
  else
    seen.flags.erase("--gpus");
  return Nothing{};
}

// "gpu:2", "gpu:a100:2", "gpu"; other resources of Slurm have other names here.
Status read_gres(const std::string& value, Seen& seen) {
  for (const std::string& one : parts_of(value, ',')) {
    const size_t colon = std::min(one.find(':'), one.size());
    const std::string kind = one.substr(0, colon);
    if (kind == "none") continue;
    if (kind != "gpu") {
      seen.has_no_meaning("--gres=" + kind);
      continue;
    }
    std::string count = colon == one.size() ? "1" : one.substr(colon + 1);
    if (!whole_number(count.substr(count.rfind(':') + 1))) count += ":1";  // "gpu:a100"
    if (Status right = read_gpu_count(count, seen); !right) return right;
  }
  return Nothing{};
}

// Jobs of a script are one task on one node each.
Status read_one(const std::string& value, Seen&) {
  const auto least = whole_number(value.substr(0, value.find('-')));
  if (!least || *least == 0) return invalid("must be a number above 0");
  if (*least > 1)
    return invalid(
        "a script runs as one task on one node: use --array for independent tasks, "
        "muster mpirun for an MPI program");
  return Nothing{};
}

// Slurm takes any name; the name of a Job is lower case, with dashes.
Status read_name(const std::string& value, Seen& seen) {
  if (value.empty()) return invalid("must not be empty");
  seen.flags["--name"] = name_from(value);
  seen.flags["--unique"] = "";
  return Nothing{};
}

Status read_dir(const std::string& value, Seen& seen) {
  if (value.empty()) return invalid("must be a directory");
  seen.flags["--chdir"] = value;
  return Nothing{};
}

// "ALL,A=1", "NONE", "A,B=2".
Status read_export(const std::string& value, Seen& seen) {
  std::string names;
  bool all = false;
  std::vector<std::string> variables;
  for (const std::string& one : parts_of(value, ',')) {
    if (one == "ALL")
      all = true;
    else if (one.find('=') != std::string::npos)
      variables.push_back(one);
    else if (one != "NONE" && one != "NIL")
      names += (names.empty() ? "" : ",") + one;
  }
  for (const std::string& one : variables)
    if (auto variable = parse_variable(one); !variable) return variable.error();
  if (names.empty()) names = "NONE";
  if (auto list = parse_export(names); !list) return list.error();
  seen.flags["--export"] = all ? "ALL" : names;
  for (const std::string& one : variables) seen.out.flags.push_back("--env=" + one);
  return Nothing{};
}

// "afterok:A:B,afterany:C", by the names of jobs.
Status read_dependency(const std::string& value, Seen& seen) {
  static const std::map<std::string, std::string> kKinds = {
      {"afterok", "ok"}, {"afternotok", "notok"}, {"afterany", "any"}, {"aftercorr", "each"}};
  const auto wrong = [](const std::string& why) {
    return invalid(why +
                   "; there are afterok:JOB, afternotok:JOB, afterany:JOB and aftercorr:JOB, by "
                   "the names of jobs");
  };
  std::string after;
  if (value.find('?') != std::string::npos) return wrong("all dependencies must hold: no `?`");
  for (const std::string& one : parts_of(value, ',')) {
    const auto parts = parts_of(one, ':');
    const auto kind = kKinds.find(parts.front());
    if (kind == kKinds.end()) return wrong("`" + parts.front() + "` cannot be used here");
    if (parts.size() < 2) return wrong("`" + one + "` names no job");
    for (size_t i = 1; i < parts.size(); ++i)
      after += (after.empty() ? "" : ",") + kind->second + ":" + parts[i];
  }
  ResourceWishes wishes;
  if (Status right = read_after(after, wishes); !right) return right;
  seen.flags["--after"] = after;
  return Nothing{};
}

Status read_input(const std::string& value, Seen&) {
  if (value == "/dev/null") return Nothing{};
  return invalid("a script has no input here: read it in the script, exec <" + value);
}

Status read_output_file(const std::string& value, Seen& seen) {
  if (value.empty()) return invalid("needs the name of a file");
  seen.out.output = value;
  return Nothing{};
}

Status read_error_file(const std::string& value, Seen& seen) {
  if (value.empty()) return invalid("needs the name of a file");
  seen.out.error = value;
  return Nothing{};
}

// "[R][B]:USR1@60", of which R is about reservations.
Status read_limit_signal(const std::string& value, Seen& seen) {
  const size_t colon = value.find(':');
  const std::string letters = colon == std::string::npos ? "" : value.substr(0, colon);
  if (letters.find_first_not_of("BR") != std::string::npos)
    return invalid("must be such as USR1@60 or B:USR1@60");
  const std::string text = (letters.find('B') == std::string::npos ? "" : "B:") +
                           (colon == std::string::npos ? value : value.substr(colon + 1));
  ResourceWishes wishes;
  if (Status right = read_signal(text, wishes); !right) return right;
  seen.flags["--signal"] = text;
  return Nothing{};
}

Status read_mail_user(const std::string& value, Seen& seen) {
  if (auto right = core::parse_mail(value); !right) return right.error();
  seen.mail_to = value;
  return Nothing{};
}

// "END,FAIL": of the moments at which Slurm mails, only the end of the whole job.
Status read_mail_type(const std::string& value, Seen& seen) {
  seen.mail_at_end = seen.mail_at_failure = false;
  for (std::string one : parts_of(value, ',')) {
    std::ranges::transform(one, one.begin(), [](unsigned char c) { return std::toupper(c); });
    if (one == "END" || one == "ALL")
      seen.mail_at_end = true;
    else if (one == "FAIL" || one == "TIME_LIMIT" || one == "INVALID_DEPEND")
      seen.mail_at_failure = true;
    else if (one != "NONE")
      seen.has_no_meaning("--mail-type=" + one);
  }
  return Nothing{};
}

// Read when the job is submitted.
Status read_begin(const std::string& value, Seen& seen) {
  if (value.empty()) return invalid("needs a time, such as 22:00 or now+1hour");
  seen.flags["--begin"] = value;
  return Nothing{};
}

Status read_hold(const std::string&, Seen& seen) {
  seen.flags["--hold"] = "";
  return Nothing{};
}

// "long", "short,long": any of them would do.
Status read_partition(const std::string& value, Seen& seen) {
  seen.out.partitions.clear();
  for (std::string& one : parts_of(value, ','))
    if (!one.empty()) seen.out.partitions.push_back(std::move(one));
  return seen.out.partitions.empty() ? Status(invalid("needs the name of a queue"))
                                     : Status(Nothing{});
}

// What chooses nodes by names of another cluster. Without it, the job may run anywhere.
template <char kLetter>
Status read_nodes(const std::string&, Seen& seen) {
  constexpr const char* kName = kLetter == 'C'   ? "--constraint"
                                : kLetter == 'w' ? "--nodelist"
                                                 : "--exclude";
  seen.has_no_meaning(std::string(kName) + " (the job may run on any node; see --node-selector)");
  return Nothing{};
}

enum class Takes { nothing, value, perhaps };  // perhaps: only after `=`, or right after a letter
struct Option {
  std::string_view name;
  char letter = 0;
  Takes takes = Takes::value;
  Reader read = nullptr;  // null: has no meaning here
};

// The options of sbatch. One that is not in this table has no meaning, and its value is the next
// word unless that is an option.
constexpr Option kOptions[] = {
    {"array", 'a', Takes::value, read_array},
    {"begin", 'b', Takes::value, read_begin},
    {"chdir", 'D', Takes::value, read_dir},
    {"cpus-per-task", 'c', Takes::value, read_cpu_count},
    {"dependency", 'd', Takes::value, read_dependency},
    {"error", 'e', Takes::value, read_error_file},
    {"export", 0, Takes::value, read_export},
    {"gpus", 'G', Takes::value, read_gpu_count},
    {"gpus-per-node", 0, Takes::value, read_gpu_count},
    {"gpus-per-task", 0, Takes::value, read_gpu_count},
    {"gres", 0, Takes::value, read_gres},
    {"hold", 'H', Takes::nothing, read_hold},
    {"input", 'i', Takes::value, read_input},
    {"job-name", 'J', Takes::value, read_name},
    {"mem", 0, Takes::value, read_memory_limit},
    {"mem-per-cpu", 0, Takes::value, read_memory_per_cpu},
    {"mail-type", 0, Takes::value, read_mail_type},
    {"mail-user", 0, Takes::value, read_mail_user},
    {"nodes", 'N', Takes::value, read_one},
    {"ntasks", 'n', Takes::value, read_one},
    {"ntasks-per-node", 0, Takes::value, read_one},
    {"output", 'o', Takes::value, read_output_file},
    {"signal", 0, Takes::value, read_limit_signal},
    {"time", 't', Takes::value, read_time_limit},

    {"account", 'A'},
    {"comment"},
    {"constraint", 'C', Takes::value, read_nodes<'C'>},
    {"contiguous", 0, Takes::nothing},
    {"distribution", 'm'},
    {"exclude", 'x', Takes::value, read_nodes<'x'>},
    {"exclusive", 0, Takes::perhaps},
    {"get-user-env", 0, Takes::perhaps},
    {"licenses", 'L'},
    {"nice", 0, Takes::perhaps},
    {"no-kill", 'k', Takes::perhaps},
    {"no-requeue", 0, Takes::nothing},
    {"nodefile", 'F'},
    {"nodelist", 'w', Takes::value, read_nodes<'w'>},
    {"overcommit", 'O', Takes::nothing},
    {"oversubscribe", 's', Takes::perhaps},
    {"parsable", 0, Takes::perhaps},
    {"partition", 'p', Takes::value, read_partition},
    {"propagate", 0, Takes::perhaps},
    {"qos", 'q'},
    {"quiet", 'Q', Takes::nothing},
    {"reboot", 0, Takes::nothing},
    {"requeue", 0, Takes::nothing},
    {"spread-job", 0, Takes::nothing},
    {"test-only", 0, Takes::nothing},
    {"use-min-nodes", 0, Takes::nothing},
    {"verbose", 'v', Takes::nothing},
    {"wait", 'W', Takes::nothing},
};

// By its long name or, as getopt takes it, by the beginning of only one. invalid: of several.
Result<const Option*> find_long(std::string_view name) {
  const Option* found = nullptr;
  for (const Option& one : kOptions) {
    if (one.name == name) return &one;
    if (!one.name.starts_with(name)) continue;
    if (found != nullptr)
      return invalid("`--" + std::string(name) + "`: could be --" + std::string(found->name) +
                     " or --" + std::string(one.name));
    found = &one;
  }
  return found;
}

const Option* find_letter(char letter) {
  const auto* found = std::ranges::find(kOptions, letter, &Option::letter);
  return found == std::end(kOptions) ? nullptr : found;
}

// Reads the options of a line, one after the other.
class LineReader {
 public:
  LineReader(const std::vector<std::string>& words, Seen& seen) : words_(words), seen_(seen) {}

  Status read() {
    while (at_ < words_.size()) {
      const std::string& word = words_[at_++];
      if (word.size() < 2 || word[0] != '-')
        return invalid("`" + word + "`: must be an option, such as --time=1:00:00");
      if (Status right = word[1] == '-' ? read_long(word) : read_letters(word); !right)
        return right;
    }
    return Nothing{};
  }

 private:
  Status read_long(const std::string& word) {
    const size_t equals = std::min(word.find('='), word.size());
    const std::string name = word.substr(0, equals);
    const auto known = find_long(std::string_view(name).substr(2));
    if (!known) return known.error();
    const Option* const option = *known;
    const bool given = equals < word.size();
    std::string value = given ? word.substr(equals + 1) : "";
    if (option == nullptr) {
      if (!given && at_ < words_.size() && !words_[at_].starts_with('-')) ++at_;
      seen_.has_no_meaning(name);
      return Nothing{};
    }
    if (option->takes == Takes::value && !given) {
      if (at_ == words_.size()) return invalid(name + " needs a value");
      value = words_[at_++];
    }
    return take(*option, name, value);
  }

  // "-n1", "-n 1", and letters without values together.
  Status read_letters(const std::string& word) {
    for (size_t i = 1; i < word.size(); ++i) {
      const std::string name = std::string("-") + word[i];
      const Option* option = find_letter(word[i]);
      if (option != nullptr && option->takes == Takes::nothing) {
        if (Status right = take(*option, name, ""); !right) return right;
        continue;
      }
      std::string value = word.substr(i + 1);
      const bool needs = option == nullptr || option->takes == Takes::value;
      if (value.empty() && needs && at_ < words_.size() &&
          (option != nullptr || !words_[at_].starts_with('-')))
        value = words_[at_++];
      if (option == nullptr) {
        seen_.has_no_meaning(name);
        return Nothing{};
      }
      if (value.empty() && needs) return invalid(name + " needs a value");
      return take(*option, name, value);
    }
    return Nothing{};
  }

  Status take(const Option& option, const std::string& name, const std::string& value) {
    if (option.read == nullptr) {
      seen_.has_no_meaning("--" + std::string(option.name));
      return Nothing{};
    }
    Status right = option.read(value, seen_);
    if (right) return right;
    // Readers that muster's own flags share name those.
    std::string why = right.error().message;
    for (const std::string_view flag : {"--after: ", "--signal: "})
      if (why.starts_with(flag)) why.erase(0, flag.size());
    const bool quotes = why.starts_with('`');  // the value
    return invalid(name + (quotes ? "" : " " + value) + ": " + why);
  }

  const std::vector<std::string>& words_;
  Seen& seen_;
  size_t at_ = 0;
};

// A size for each of some CPUs, as a size.
std::string multiplied(const std::string& amount, int64_t count) {
  const size_t unit = amount.size() - 2;
  return std::to_string(whole_number(amount.substr(0, unit)).value_or(0) * count) +
         amount.substr(unit);
}

}  // namespace

Result<SbatchOptions> read_sbatch(const std::string& file, const std::vector<OptionLine>& lines,
                                  const std::string& cpus) {
  Seen seen;
  for (const OptionLine& line : lines)
    if (Status right = LineReader(line.words, seen).read(); !right)
      return invalid(file + ":" + std::to_string(line.number) + ": " + right.error().message);
  if (!seen.memory_per_cpu.empty()) {
    const auto milli = core::parse_quantity_milli(cpus.empty() ? seen.flags["--cpus"] : cpus);
    seen.flags["--mem"] =
        multiplied(seen.memory_per_cpu, std::max<int64_t>(1, milli ? (*milli + 999) / 1000 : 1));
    if (seen.flags["--cpus"].empty()) seen.flags.erase("--cpus");
  }
  for (const auto& [flag, value] : seen.flags)
    seen.out.flags.push_back(value.empty() ? flag : flag + "=" + value);
  const bool mails = seen.mail_at_end || seen.mail_at_failure;
  if (!mails && !seen.mail_to.empty()) seen.has_no_meaning("--mail-user without --mail-type");
  if (mails)
    seen.out.notices = {"--mail=" + (seen.mail_to.empty() ? user_name() : seen.mail_to),
                        std::string("--notify-on=") + (seen.mail_at_end ? "end" : "fail")};
  return std::move(seen.out);
}

}  // namespace muster::cli
