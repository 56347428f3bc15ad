import { unavailable } from '../../errors.js';

/** The part of an embedded store that is needed: all of its databases, by name. */
interface Engine {
  db(name: string): {
    command(command: object): Promise<object>;
    collections(): Promise<{ collectionName: string }[]>;
    collection(name: string): { findOne(filter: object, options: object): Promise<unknown> };
  };
}

const NAMESPACE_NOT_FOUND = 26;

/**
 * Gives the database of an embedded store its name `name`: earlier versions called it as BSVC_MONGODB_DB said. One that
 * holds projects is renamed, collection by collection, so that an interrupted renaming is gone on with. Throws
 * DATABASE_AMBIGUOUS when it cannot be told which one is meant.
 */
export async function adoptDatabase(engine: Engine, name: string): Promise<void> {
  const { databases } = (await engine.db('admin').command({ listDatabases: 1 })) as {
    databases: { name: string }[];
  };
  const others = databases.map((database) => database.name).filter((other) => other !== name);
  const holding: string[] = [];
  for (const other of others) if (await holdsProjects(engine, other)) holding.push(other);
  if (holding.length === 0 || (await holdsProjects(engine, name))) return;
  const [old, ...more] = holding;
  const areBothWhole = (await holds(engine, name, 'migrations')) && (await holds(engine, old!, 'migrations'));
  if (more.length > 0 || areBothWhole) {
    throw unavailable(
      'DATABASE_AMBIGUOUS',
      `The embedded store has no projects in the database ${name}, but in ${holding.join(', ')}, made when BSVC_MONGODB_DB said so: drop the database ${name} through the listener of BSVC_ENGINE_LISTEN with the version that made them, and the other one takes its place.`,
    );
  }
  const collections = await engine.db(old!).collections();
  const names = collections.map(({ collectionName }) => collectionName);
  // What says that the renaming is not over goes last.
  for (const collection of [...names.filter((each) => !MARKS.includes(each)), ...MARKS]) {
    if (names.includes(collection)) await rename(engine, `${old!}.${collection}`, `${name}.${collection}`);
  }
}

const MARKS = ['migrations', 'projects'];

function holdsProjects(engine: Engine, database: string): Promise<boolean> {
  return holds(engine, database, 'projects');
}

async function holds(engine: Engine, database: string, collection: string): Promise<boolean> {
  return (
    (await engine
      .db(database)
      .collection(collection)
      .findOne({}, { projection: { _id: 1 } })) !== null
  );
}

async function rename(engine: Engine, renameCollection: string, to: string): Promise<void> {
  try {
    await engine.db('admin').command({ renameCollection, to });
  } catch (error) {
    // Another process was faster.
    if ((error as { code?: unknown }).code !== NAMESPACE_NOT_FOUND) throw error;
  }
}
