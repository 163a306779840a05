// muster drill: lists scenarios, runs them, lists earlier reports.
#include "drill/drill.hpp"

#include "cli/verbs/verbs.hpp"
#include "client/terminal/exit_codes.hpp"
#include "client/terminal/table.hpp"
#include "drill/proof/scenario.hpp"

#include <iostream>
#include <string>
#include <vector>

namespace muster::cli {
namespace {

int list_scenarios() {
  std::vector<std::vector<std::string>> rows{{"NAME", "WHAT IT DOES", "NEEDS", "TYPICAL"}};
  for (const drill::Scenario& scenario : drill::scenarios())
    rows.push_back({scenario.name, scenario.what, scenario.needs, scenario.typical});
  std::cout << aligned(rows, "");
  return kDone;
}

}  // namespace

int execute(const DrillOptions& options) {
  switch (options.what) {
    case DrillOptions::What::list:
      return list_scenarios();
    case DrillOptions::What::run:
      return drill::run_drills(options);
    case DrillOptions::What::history: {
      auto table = drill::history(options.report_dir);
      if (!table) return fail(table.error());
      std::cout << *table;
      return kDone;
    }
  }
  return kUsage;
}

}  // namespace muster::cli
