// Builds the page into ../built: hashed files under assets/, each also compressed, index.html and diagram.html.
// With --tests, bundles the unit tests for Node into built-tests. With --parts FOLDER, builds into that folder a page
// with single parts of the page, for browser tests. With --run FILE, runs a program in TypeScript with the arguments
// that follow.
import { build } from "esbuild";
import { readFile, readdir, rm, writeFile } from "node:fs/promises";
import { basename, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";

const here = fileURLToPath(new URL(".", import.meta.url));
const [mode, folder] = process.argv.slice(2);
const built = mode === "--parts" ? resolve(folder) : join(here, "..", "built");
const main = mode === "--parts" ? "tests/parts/main.tsx" : "src/main.tsx";
const compressed = /\.(css|html|js|json|svg)$/;

const shared = {
  absWorkingDir: here,
  bundle: true,
  format: "esm",
  jsx: "automatic",
  jsxImportSource: "preact",
  logLevel: "warning",
  target: "es2022",
};

if (mode === "--tests") {
  await bundleTests();
} else if (mode === "--run") {
  await run(folder);
} else {
  await buildPage();
}

async function buildPage() {
  await rm(built, { recursive: true, force: true });
  await Promise.all([buildIndex(), buildDiagram()]);
  await compressAll();
}

async function buildIndex() {
  const metafile = await bundle("assets", [main, "src/styles/page.css", "src/icon.svg"]);
  const styles = outputOf(metafile, "src/styles/page.css");
  const icon = outputOf(metafile, "src/icon.svg");
  const template = await readFile(join(here, "index.html"), "utf8");
  const html = template
    .replace("<!-- icon -->", `<link rel="icon" href="${icon.url}">`)
    .replace("<!-- styles -->", `<link rel="stylesheet" href="${styles.url}">`)
    .replace("<!-- script -->", scriptOf(metafile, main));
  await writeFile(join(built, "index.html"), html);
}

// The page of the frame that draws diagrams. Its files have a folder of their own, because the frame has an origin of
// its own: the supervisor serves them to every origin.
async function buildDiagram() {
  const metafile = await bundle("assets/diagram", ["src/diagram/frame.ts"]);
  const template = await readFile(join(here, "diagram.html"), "utf8");
  await writeFile(
    join(built, "diagram.html"),
    template.replace("<!-- script -->", scriptOf(metafile, "src/diagram/frame.ts")),
  );
}

async function bundle(folder, entryPoints) {
  const names = `${folder}/[name]-[hash]`;
  const { metafile } = await build({
    ...shared,
    assetNames: names,
    chunkNames: names,
    define: { "process.env.NODE_ENV": '"production"' },
    entryNames: names,
    entryPoints,
    legalComments: "linked",
    loader: { ".svg": "copy" },
    metafile: true,
    minify: true,
    outdir: built,
    platform: "browser",
    splitting: true,
  });
  return metafile;
}

function scriptOf(metafile, entryPoint) {
  const script = outputOf(metafile, entryPoint);
  // Chunks that the script imports at once are fetched with it, not after it.
  const chunks = metafile.outputs[script.output].imports
    .filter((one) => one.kind === "import-statement")
    .map((one) => `<link rel="modulepreload" href="${fromBuilt(one.path)}">`);
  return [...chunks, `<script type="module" src="${script.url}"></script>`].join("\n    ");
}

function outputOf(metafile, entryPoint) {
  const found = Object.entries(metafile.outputs).find(([, output]) => output.entryPoint === entryPoint);
  if (!found) throw new Error(`esbuild wrote no output for ${entryPoint}`);
  return { output: found[0], url: fromBuilt(found[0]) };
}

function fromBuilt(output) {
  return relative(built, join(here, output));
}

async function compressAll() {
  for (const entry of await readdir(built, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || !compressed.test(entry.name)) continue;
    const file = join(entry.parentPath, entry.name);
    const content = await readFile(file);
    const brotli = { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } };
    await writeFile(`${file}.br`, await promisify(brotliCompress)(content, brotli));
    await writeFile(`${file}.gz`, await promisify(gzip)(content, { level: 9 }));
  }
}

async function bundleTests() {
  const folder = join(here, "tests");
  const names = (await readdir(folder)).filter((name) => /\.tsx?$/.test(name));
  await rm(join(here, "built-tests"), { recursive: true, force: true });
  await build({
    ...shared,
    entryPoints: names.map((name) => join("tests", basename(name))),
    outdir: join(here, "built-tests"),
    outExtension: { ".js": ".mjs" },
    packages: "external",
    platform: "node",
  });
}

async function run(file) {
  const { outputFiles } = await build({ ...shared, entryPoints: [file], platform: "node", write: false });
  process.argv.splice(1, 3, file);
  await import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString("base64")}`);
}
