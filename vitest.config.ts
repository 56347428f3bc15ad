import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { killDescendants } from './test/helpers/process-tree.js';
import { placeOfFiles } from './test/helpers/run-folder.js';

// Whatever the runner, the tests and the processes that they start put into the folder for temporary files goes below
// this one. It goes when the run ends, with what still runs, also when the run is interrupted or a test fails before it
// has cleaned up.
const temporary = mkdtempSync(join(placeOfFiles(), 'bsvc-tests-'));
process.env.TMPDIR = temporary;
process.on('exit', () => {
  killDescendants(process.pid);
  rmSync(temporary, { recursive: true, force: true, maxRetries: 5 });
});

const reportFile = process.env.BSVC_TEST_REPORT;
/** Compiled once for all projects: those of this run, or of all those that are given the same directory. */
const modules = process.env.BSVC_TEST_MODULES ?? join(temporary, 'modules');

const patient = {
  // For what hangs: no test measures by them how long a machine takes, which may have ten times as much to do.
  testTimeout: 400_000,
  hookTimeout: 400_000,
  // A second, as it is otherwise, passes on a busy machine before a browser or a process has done anything.
  expect: { poll: { timeout: 150_000 } },
  pool: 'forks' as const,
};
// The API's tests run twice: on the engine in the process, and through the official driver against a replica set of one
// that its wire transport passes for.
const everywhere = {
  ...patient,
  setupFiles: ['test/helpers/reply-violations.ts', 'test/helpers/left-over.ts'],
};

/**
 * Tests that take long because they kill, fill, outwait or count to a hundred thousand: `npm run test:deep`, which CI
 * runs after `npm test`.
 */
const DEEP = 'test/{console,e2e,worker,**/attacks,**/deep}/**/*.test.ts';

/** The engine is a package of its own; CI leaves its deep tests out where they have passed with the same files. */
const ENGINE = 'src/engine/test/**/*.test.ts';
const ENGINE_DEEP = 'src/engine/test/**/deep/**/*.test.ts';
const ENGINE_ALONE = 'src/engine/test/alone/**/*.test.ts';

/** Deep tests that replace modules or clocks, or measure their process: each has one to itself. */
const ALONE = 'test/**/alone/**/*.test.ts';

/** What fails among modules that another file has used, also over the wire. */
const ALONE_ON_EACH = 'test/api/alone/**/*.test.ts';

/** About what comes before any database, or after it. */
const EDGE = 'test/api/**/edge/**/*.test.ts';

/** What takes longest begins first: when it begins last, it alone is waited for. */
const SLOWEST = [
  ...list('api/attacks', 'alone/event-loop edge/fuzz'),
  ...list('console', 'screens work day'),
  ...list('e2e', 'guides large-replies faults-database processes faults-redis faults-stop soak changes-kill'),
  'src/engine/test/alone/readers.test.ts',
  ...list('cli/deep', 'every-command'),
].map((name) => join(import.meta.dirname, name));

class SlowestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification): number => {
      const at = SLOWEST.indexOf(moduleId);
      return at < 0 ? SLOWEST.length : at;
    };
    return (await super.sort(files)).sort((a, b) => rank(a) - rank(b));
  }
}

function list(folder: string, names: string): string[] {
  return names.split(' ').map((name) => `test/${folder}/${name}.test.ts`);
}

export default defineConfig({
  test: {
    ...everywhere,
    experimental: { fsModuleCache: true, fsModuleCachePath: modules },
    // Many tests wait for processes that they have started, most of the deep ones: `npm run test:deep` takes three.
    maxWorkers: 2,
    sequence: { sequencer: SlowestFirst },
    globalSetup: ['test/helpers/demand-refusals.ts', 'test/helpers/tell-server.ts'],
    reporters: reportFile ? ['default', ['json', { outputFile: reportFile }]] : ['default'],
    projects: [
      // The files of a worker share its modules: loading them anew for each takes as long as the tests themselves.
      {
        test: {
          ...everywhere,
          name: 'embedded',
          include: ['test/**/*.test.ts'],
          exclude: [DEEP, ALONE],
          isolate: false,
        },
      },
      { test: { ...everywhere, name: 'deep', include: [DEEP], exclude: [ALONE], isolate: false } },
      { test: { ...everywhere, name: 'deep-alone', include: [ALONE] } },
      {
        test: {
          ...everywhere,
          name: 'driver',
          include: ['test/api/**/*.test.ts', 'test/worker/**/*.test.ts'],
          isolate: false,
          exclude: [ALONE, EDGE],
          env: { BSVC_TEST_TRANSPORT: 'wire' },
        },
      },
      { test: { ...patient, name: 'engine', include: [ENGINE], exclude: [ENGINE_DEEP, ENGINE_ALONE], isolate: false } },
      { test: { ...patient, name: 'engine-deep', include: [ENGINE_DEEP], isolate: false } },
      { test: { ...patient, name: 'engine-alone', include: [ENGINE_ALONE] } },
      { test: { ...everywhere, name: 'driver-alone', include: [ALONE_ON_EACH], env: { BSVC_TEST_TRANSPORT: 'wire' } } },
    ],
  },
});
