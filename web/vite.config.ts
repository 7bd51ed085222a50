import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { defineConfig, type Plugin } from 'vite';

const SHIPPED = ['preact', '@preact/signals', '@preact/signals-core', 'uplot'];

/** Writes the licenses of the libraries that the page contains beside it. */
function licenses(): Plugin {
  return {
    name: 'licenses',
    apply: 'build',
    generateBundle() {
      const texts = SHIPPED.map((name) => {
        const license = readFileSync(`node_modules/${name}/LICENSE`, 'utf8').trim();
        return `${name}\n${'-'.repeat(name.length)}\n${license}\n`;
      });
      this.emitFile({ type: 'asset', fileName: 'LICENSES.txt', source: texts.join('\n') });
    },
  };
}

/** Leaves compressed files beside scripts and styles; the server sends them as they are. */
function compressed(): Plugin {
  return {
    name: 'compressed',
    apply: 'build',
    writeBundle({ dir = '' }, bundle) {
      for (const name of Object.keys(bundle).filter((each) => /\.(js|css)$/.test(each))) {
        writeFileSync(join(dir, `${name}.gz`), gzipSync(readFileSync(join(dir, name)), { level: 9 }));
      }
    },
  };
}

export default defineConfig({
  // Relative addresses: index.html has a base element, and the server writes its base path into it.
  base: './',
  plugins: [licenses(), compressed()],
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    outDir: '../src/barnabas/console/static',
    emptyOutDir: true,
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: true,
  },
  server: { proxy: { '/api': process.env['CONSOLE_API'] ?? 'http://127.0.0.1:8089' } },
});
