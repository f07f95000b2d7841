// The page that draws a board, into .cache/pictures, with icons and fonts where Grafana's components ask for them.
import fs from 'node:fs';
import path from 'node:path';
import { defineConfig } from 'vite';

const here = import.meta.dirname;
const out = path.join(here, '..', '..', '.cache', 'pictures', 'page');
const inter = path.join(here, 'node_modules', '@fontsource', 'inter', 'files');
const FONTS = { Regular: '400-normal', Medium: '500-normal', Italic: '400-italic', MediumItalic: '500-italic' };

function placed() {
  const fonts = path.join(out, 'public', 'fonts', 'inter');
  fs.mkdirSync(fonts, { recursive: true });
  for (const [name, weight] of Object.entries(FONTS)) {
    fs.copyFileSync(path.join(inter, `inter-latin-${weight}.woff2`), path.join(fonts, `Inter-${name}.woff2`));
  }
  const icons = path.join(here, 'node_modules', '@grafana', 'ui', 'dist', 'public', 'img', 'icons');
  fs.cpSync(icons, path.join(out, 'public', 'build', 'img', 'icons'), { recursive: true });
}

export default defineConfig({
  root: here,
  base: './',
  logLevel: 'error',
  define: { 'process.env.NODE_ENV': '"production"', 'process.env': '{}', global: 'globalThis' },
  plugins: [{ name: 'assets', closeBundle: placed }],
  build: { outDir: out, emptyOutDir: true, target: 'es2022', chunkSizeWarningLimit: 20000 },
});
