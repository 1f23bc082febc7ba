const numbers = Array.from({ length: 1000 }, (_, n) => String(n + 1).padStart(4, "0"));
const files = await Promise.all(numbers.map((number) =>
  servers.filesystem.read_text_file({ path: `DIRECTORY/services/${number}.json` })));
return files
  .map((file) => JSON.parse(file.content))
  .filter(({ resources }) => resources.memory_request_mib > resources.memory_limit_mib)
  .map((service) => service.name);
