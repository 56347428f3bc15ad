/**
 * The most lines, written by hand, that each part may have; `test/architecture.test.ts` fails beyond. A change that
 * makes a part larger raises its row in the same commit and says why, one that makes it smaller lowers it.
 */
export const LINE_BUDGET: Readonly<Record<string, number>> = {
  cli: 12750,
  src: 1100,
  'src/client': 3600,
  'src/config': 800,
  'src/console': 12250,
  'src/engine': 32400,
  'src/exchange': 350,
  'src/features/access': 3000,
  'src/features/audit': 250,
  'src/features/backups': 800,
  'src/features/changes': 950,
  'src/features/collections': 5800,
  'src/features/console': 150,
  'src/features/declaration': 1000,
<<<<<<< HEAD
  'src/features/documents': 10450,
=======
  'src/features/documents': 10650,
>>>>>>> 6ca21fbcd (engine: read one document by its _id without a search)
  'src/features/erasure': 300,
  'src/features/feed': 2950,
  'src/features/files': 2850,
  'src/features/health': 250,
  'src/features/hooks': 1150,
  'src/features/mail': 2600,
  'src/features/management': 2250,
  'src/features/operators': 1000,
  'src/features/plans': 100,
  'src/features/project-types': 1250,
  'src/features/projects': 1000,
  'src/features/quota': 500,
  'src/features/reference': 1850,
  'src/features/rule-tests': 350,
  'src/features/series': 950,
  'src/features/store-copies': 1250,
  'src/features/users': 7700,
  'src/features/webhooks': 2500,
  'src/http': 3850,
  'src/migrations': 300,
  'src/packaging': 250,
  'src/platform': 8800,
  test: 1100,
<<<<<<< HEAD
  'test/api': 37050,
  'test/bench': 3800,
=======
  'test/api': 36450,
  'test/bench': 4000,
>>>>>>> 6ca21fbcd (engine: read one document by its _id without a search)
  'test/cli': 9950,
  'test/client': 3600,
  'test/clients': 650,
  'test/console': 3000,
<<<<<<< HEAD
  'test/e2e': 6750,
  'test/engine': 11550,
=======
  'test/e2e': 6400,
  'test/engine': 11650,
>>>>>>> 6ca21fbcd (engine: read one document by its _id without a search)
  'test/features': 10900,
  'test/helpers': 11150,
  'test/http': 1350,
  'test/measure': 400,
  'test/mutants': 250,
  'test/platform': 4500,
  'test/worker': 200,
  'test/world': 200,
};

/**
 * How many files of each folder still import the source itself, instead of what `test/world` has of it; one that no
 * longer does lowers its row.
 */
export const PAST_THE_WORLD: Readonly<Record<string, number>> = {
  'test/api': 30,
  'test/cli': 13,
  'test/client': 0,
  'test/console': 0,
  'test/e2e': 5,
  'test/worker': 0,
};
