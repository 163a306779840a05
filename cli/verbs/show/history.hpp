// Options of muster history and muster report.
#pragma once

#include "cli/verbs/verb.hpp"
#include "client/news/report.hpp"

namespace muster::cli {

// Which jobs; empty: all.
struct HistoryChoice {
  std::vector<std::string> names;     // patterns
  std::string users, queues, states;  // "a,b"
  std::optional<Millis> since, until;
};

struct HistoryOptions {
  Target target;
  bool all_namespaces = false;
  HistoryChoice choice;
  std::string sort = "created";
  bool reverse = false;
  uint32_t limit = 1000;  // entries; 0: all
  bool attempts = false;
  Output output = Output::table;
  bool headers = true;
};

struct ReportOptions {
  Target target;
  bool all_namespaces = true;
  HistoryChoice choice;              // of `since` and `until`, the periods have more
  std::vector<std::string> columns;  // parameters of the request
  std::string period;                // the word for the column "span"; empty: none
  Periods periods;
  Output output = Output::table;
  bool headers = true;
};

// The words of flags that both verbs have.
struct HistoryWords {
  std::string user, queue, state, since, until;
  std::vector<std::string> names;
};
FlagRows history_rows(HistoryWords& words);
// -o, of these forms.
FlagRow form_row(const std::vector<std::string>& forms);
std::optional<Usage> read_choice(const Given& given, const HistoryWords& words, Millis now,
                                 HistoryChoice& choice);
// The parameters of a request, without `since` and `until`: "&user=a,b"; each begins with "&".
std::string choice_query(const HistoryChoice& choice);

int execute(const HistoryOptions& options);
int execute(const ReportOptions& options);  // report.cpp

}  // namespace muster::cli
