import { defineConfig } from 'vitest/config';

const reportFile = process.env.BSVC_TEST_REPORT;

// The API's tests run twice: on the engine in the process, and through the official driver over the engine's wire door.
// In CI a failed test gets a second chance, for processes and sockets on a busy machine; the runner lists what needed it. At home the first failure counts.
const everywhere = {
  testTimeout: 60_000,
  hookTimeout: 60_000,
  pool: 'forks' as const,
  // Many tests wait for processes that they have started: one file at a time leaves a machine of two processors idle.
  maxWorkers: 2,
  retry: process.env.CI ? 1 : 0,
  setupFiles: ['test/helpers/reply-violations.ts'],
};

export default defineConfig({
  test: {
    ...everywhere,
    reporters: reportFile ? ['default', ['json', { outputFile: reportFile }]] : ['default'],
    projects: [
      { test: { ...everywhere, name: 'embedded', include: ['test/**/*.test.ts'] } },
      {
        test: {
          ...everywhere,
          name: 'driver',
          include: ['test/api/**/*.test.ts', 'test/worker/**/*.test.ts'],
          // About what comes before any database.
          exclude: ['http-messages', 'json-bombs', 'uploads', 'fuzz'].map((name) => `test/api/attacks/${name}.test.ts`),
          env: { BSVC_TEST_DOOR: 'wire' },
        },
      },
    ],
  },
});
