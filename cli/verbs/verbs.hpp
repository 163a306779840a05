// The verbs, one file each: execute() runs the verb with its options and returns the exit code.
#pragma once

#include "cli/verbs/options.hpp"

namespace muster::cli {

int execute(const RunOptions& options);
int execute(const SubmitOptions& options);
int execute(const ExecOptions& options);
int execute(const CoordinatorOptions& options);
int execute(const AgentOptions& options);
int execute(const CreateOptions& options);
int execute(const GetOptions& options);
int execute(const DescribeOptions& options);
int execute(const LogsOptions& options);
int execute(const AttemptsOptions& options);
int execute(const WhyOptions& options);
int execute(const RetryOptions& options);
int execute(const WaitOptions& options);
int execute(const DeleteOptions& options);
int execute(const ChangeOptions& options);
int execute(const DrainOptions& options);
int execute(const ApplyOptions& options);
int execute(const BackupOptions& options);
int execute(const RestoreOptions& options);
int execute(const VerifyOptions& options);
int execute(const JournalOptions& options);
int execute(const VersionOptions& options);
int execute(const ConfigOptions& options);
int execute(const CompletionOptions& options);
int execute(const KubeconfigOptions& options);
int execute(const AccessOptions& options);
int execute(const DrillOptions& options);
int execute(const DevOptions& options);
int execute(const ExplainOptions& options);
int execute(const TopOptions& options);

}  // namespace muster::cli
