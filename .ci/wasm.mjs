// Runs wasm.py, and with it the tests, on the CPython that pyodide carries: compiled to WebAssembly, without processes.
//     node wasm.mjs REPOSITORY WHEELS        (pyodide is found from the current directory)
import { createRequire } from "node:module";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const [repository, wheels] = process.argv.slice(2);
const { loadPyodide } = createRequire(join(process.cwd(), "here.js"))("pyodide");
const python = await loadPyodide();
const copy = (from, to, names) => {
  python.FS.mkdir(to);
  for (const name of names) python.FS.writeFile(`${to}/${name}`, readFileSync(join(from, name)));
};
copy(wheels, "/wheels", readdirSync(wheels));
copy(repository, "/clone", ["hotenv.py", "test_hotenv.py", "README.md", "pyproject.toml"]);
process.exitCode = python.runPython(readFileSync(join(repository, ".ci", "wasm.py"), "utf8") + "\nrun()");
