#include "client/news/wait_news.hpp"

#include "base/printable.hpp"
#include "client/connect/objects.hpp"
#include "client/news/attempts.hpp"

#include <iostream>

namespace muster::cli {

namespace {

// What pods wait for, or which nodes do not reach each other; empty: nothing is wrong.
std::string trouble(const Json& why, bool runs) {
  std::string text;
  if (!runs && text_at(why, {"state"}) == "Pending") text = text_at(why, {"summary"});
  if (!runs && text.empty()) return "";
  for (const Json& line : at(why, {runs ? "unreached" : "details"}))
    if (line.is_string()) text += (text.empty() ? "" : "\n    ") + line.get<std::string>();
  return text;
}

}  // namespace

void WaitNews::look(const Standing& standing, bool mpi, Millis now,
                    const std::function<void()>& first) {
  const bool runs = standing.running > 0;
  if (runs ? !mpi : standing.active == 0) return ask_at_.reset();
  if (!ask_at_ || runs != runs_) ask_at_ = now + (runs ? kAgain : kDelay);
  runs_ = runs;
  if (now < *ask_at_) return;
  ask_at_ = now + kAgain;
  const auto why = object(client_, own_path(ns_, job_, "why"));
  const std::string text = why ? trouble(*why, runs) : "";
  if (text.empty() || text == said_) return;
  said_ = text;
  first();
  std::cerr << "muster: " << visible(text) << std::endl;
}

}  // namespace muster::cli
