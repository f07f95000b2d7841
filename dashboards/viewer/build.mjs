// Writes the page of `context-ledger dashboard`, one file with everything in it; --check compares instead.
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, transform } from 'esbuild';

const here = path.dirname(fileURLToPath(import.meta.url));
const at = (...parts) => path.join(here, ...parts);
const page = at('..', '..', 'otel_context_ledger', 'cli', 'viewer', 'page.html');
const read = (...parts) => fs.readFileSync(at(...parts), 'utf8');

const bundled = await build({
  absWorkingDir: here,
  entryPoints: ['src/main.ts'],
  bundle: true,
  minify: true,
  write: false,
  format: 'iife',
  target: 'es2022',
  charset: 'utf8',
  legalComments: 'none',
});
const style = await transform(`${read('node_modules', 'uplot', 'dist', 'uPlot.min.css')}\n${read('style.css')}`, { loader: 'css', minify: true });
const parts = {
  licence: `uPlot ${JSON.parse(read('node_modules', 'uplot', 'package.json')).version} (https://github.com/leeoniya/uPlot)\n\n${read('node_modules', 'uplot', 'LICENSE').trim()}`,
  style: style.code.trim(),
  script: bundled.outputFiles[0].text.trim().replaceAll('</script', '<\\/script').replaceAll('<!--', '<\\!--'),
};
const made = read('page.html').replaceAll(/\{\{(\w+)\}\}/g, (_, name) => parts[name]);

if (process.argv.includes('--check')) {
  if (fs.readFileSync(page, 'utf8') !== made) {
    console.error('the page of the viewer is not what its sources say; run `make viewer`');
    process.exit(1);
  }
} else {
  fs.writeFileSync(page, made);
  console.log(`${path.relative(process.cwd(), page)}: ${made.length} characters`);
}
