const months: Record<string, number> = {};
const seen = new Set<string>();
let end_timestamp, commits;
do {
  const log = await servers.git.git_log({ repo_path: "DIRECTORY/repository", max_count: 100, end_timestamp });
  commits = [...log.matchAll(/^Commit: (.*)\nAuthor: .*\nDate: (.*)\nMessage: (.*)$/gm)];
  for (const [, hash, date, subject] of commits) {
    const month = date.slice(0, 7);
    if (subject.startsWith("Revert ") && !seen.has(hash)) months[month] = (months[month] ?? 0) + 1;
    seen.add(hash);
    end_timestamp = date;
  }
} while (commits.length === 100);
return months;
