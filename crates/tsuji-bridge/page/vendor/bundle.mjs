// Makes one module of roslib and what it needs, and a text of the terms of each part. `scripts/page` runs it beside the packages.
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { build } from 'esbuild';

const { metafile } = await build({
  entryPoints: ['entry.js'],
  bundle: true,
  format: 'esm',
  platform: 'browser',
  target: 'es2022',
  alias: { ws: './ws.js' },
  minify: true,
  charset: 'utf8',
  legalComments: 'none',
  banner: { js: '// roslib and what it needs, as scripts/page bundles them. Their terms: LICENSES.txt.' },
  metafile: true,
  logLevel: 'warning',
  outfile: 'roslib.js',
});

const parts = Object.entries(metafile.outputs['roslib.js'].inputs).filter(([, { bytesInOutput }]) => bytesInOutput > 0);
const folders = parts.map(([path]) => /^.*node_modules\/(@[^/]+\/)?[^/]+/.exec(path)?.[0]).filter(Boolean);
const terms = [...new Set(folders)].sort().map((folder) => {
  const { name, version, license } = JSON.parse(readFileSync(`${folder}/package.json`, 'utf8'));
  const file = readdirSync(folder).find((it) => /^licen[cs]e/i.test(it));
  const own = `terms/${name.replace('/', '+')}.txt`;
  const text = file ? `${folder}/${file}` : own;
  if (!existsSync(text)) throw new Error(`${name}: its terms (${license}) are neither in the package nor in ${own}`);
  return `${name} ${version}, ${license}\n\n${readFileSync(text, 'utf8').replaceAll('\r\n', '\n').trim()}\n`;
});
const begin = 'What others wrote of roslib.js, and its terms.\n';
writeFileSync('LICENSES.txt', [begin, ...terms].join(`\n${'-'.repeat(78)}\n\n`));
