import { LRUCache } from 'lru-cache';
import type { App } from '../../app.js';
import { publicPath } from '../../config/public-path.js';
import type { RouteList } from '../../http/routes/route.js';
import { ownTurn } from '../../scheduler.js';
import type { Project } from '../projects/project.js';
import { prepareFile, type PreparedFile } from '../../http/routes/prepared-file.js';
import { describeProject, type Audience, type DescribedProject } from './described-project.js';
import { buildProjectDocument, COLLECTION_TAG } from './project-document.js';
import { writeBrief } from './project-brief.js';
import { writeTypeFile } from './type-file.js';
import type { JsonSchema } from '../../platform/schema/schema.js';
import type { ApiDocument } from '../reference/api-document.js';
import { compactDocument, writeTag } from '../reference/compact-document.js';
import { openComponents } from '../reference/schema-components.js';
import { collectionSchemas } from './collection-schemas.js';

/** Files made of the collections of a project: TypeScript, OpenAPI, JSON Schema, a page for coding agents. */
export type ProjectFile = 'types.d.ts' | 'openapi.json' | 'schema.json' | 'brief.md';

const MEDIA_TYPES: Readonly<Record<ProjectFile, string>> = {
  'types.d.ts': 'text/plain; charset=utf-8',
  'openapi.json': 'application/json; charset=utf-8',
  'schema.json': 'application/json; charset=utf-8',
  'brief.md': 'text/markdown; charset=utf-8',
};

/** A part of the API document: the operations of a tag, or without one those that are this project's own. */
type Part = { tag?: string | undefined };

/**
 * The text of a file, of a service at `publicUrl`; the same project always gives the same. `part` is of the API
 * document alone, which is whole without: 404 for an unknown tag.
 */
export async function writeProjectFile(
  file: ProjectFile,
  lists: readonly RouteList[],
  project: DescribedProject,
  publicUrl: string | null = null,
  part?: Part,
): Promise<string> {
  switch (file) {
    case 'types.d.ts':
      return writeTypeFile(project);
    case 'openapi.json': {
      const document = await buildProjectDocument(lists, project, publicPath({ publicUrl }));
      if (!part) return stringify(document, 2);
      return part.tag === undefined ? JSON.stringify(keepOwn(document)) : writeTag(document, part.tag);
    }
    case 'schema.json':
      return stringify(await writeSchemaFile(project), 1);
    case 'brief.md':
      return writeBrief(project, publicUrl);
  }
}

const OTHERS =
  'This document is of the collections alone. `?tag=` with the name of another tag answers its operations; `bsvc generate openapi` writes everything as one document.';

/** What no other project has, in short; the tags are all named. */
function keepOwn(document: ApiDocument): ApiDocument {
  const own = compactDocument(document, (tag) => tag === 'Documents' || tag.startsWith(COLLECTION_TAG));
  return { ...own, info: { ...own.info, description: `${OTHERS}\n\n${own.info.description}` } };
}

/** As `JSON.stringify(value, null, 2)` with a line break behind it, but a part at a time down to `depth` levels. */
async function stringify(value: object, depth: number): Promise<string> {
  const write = async (part: unknown, level: number): Promise<string> => {
    if (level > depth || typeof part !== 'object' || part === null || Array.isArray(part)) {
      await ownTurn();
      return JSON.stringify(part, null, 2);
    }
    const members: string[] = [];
    for (const [name, inner] of Object.entries(part)) {
      if (inner === undefined) continue;
      members.push(`  ${JSON.stringify(name)}: ${(await write(inner, level + 1)).replaceAll('\n', '\n  ')}`);
    }
    return members.length === 0 ? '{}' : `{\n${members.join(',\n')}\n}`;
  };
  return `${await write(value, 0)}\n`;
}

const KEPT_BYTES = 16 * 1024 * 1024;

interface KeptFile {
  version: string;
  file: PreparedFile;
}

interface Kept {
  files: LRUCache<string, KeptFile>;
  /** Those that are being made, so that many requests at once cost what one does. */
  making: Map<string, Promise<PreparedFile>>;
}

/** Files that were asked for before, of all projects of an application. */
const kept = new WeakMap<App['cache'], Kept>();

/** A file ready to be sent; made again when a collection has changed since. */
export async function readProjectFile(
  app: App,
  lists: readonly RouteList[],
  project: Project,
  file: ProjectFile,
  audience: Audience,
  part: Part,
): Promise<PreparedFile> {
  const { files, making } = kept.get(app.cache) ?? openKept(app);
  const described = await describeProject(app, project, audience);
  const { version } = described;
  const place = `${project._id.toHexString()} ${audience.isPublic} ${file} ${JSON.stringify(part)}`;
  const known = files.get(place);
  if (known?.version === version) return known.file;
  const attempt = `${place} ${version}`;
  const made =
    making.get(attempt) ??
    make(file, lists, described, app.config.publicUrl, part).finally(() => making.delete(attempt));
  making.set(attempt, made);
  files.set(place, { version, file: await made });
  return made;
}

async function make(
  file: ProjectFile,
  lists: readonly RouteList[],
  project: DescribedProject,
  publicUrl: string | null,
  part: Part,
): Promise<PreparedFile> {
  return prepareFile(MEDIA_TYPES[file], await writeProjectFile(file, lists, project, publicUrl, part));
}

function openKept(app: App): Kept {
  const files = new LRUCache<string, KeptFile>({
    maxSize: KEPT_BYTES,
    sizeCalculation: ({ file }) => file.bytes.length + (file.gzipped?.length ?? 0),
  });
  const made: Kept = { files, making: new Map() };
  kept.set(app.cache, made);
  return made;
}

/**
 * The documents of a project as one JSON Schema: below `$defs` for each collection what is answered, inserted and
 * changed; the schema itself is of an object with a list of documents by collection.
 */
async function writeSchemaFile(project: DescribedProject): Promise<JsonSchema> {
  const components = openComponents('#/$defs/');
  const properties: Record<string, JsonSchema> = {};
  for (const collection of project.collections) {
    const { Document, Insert, Update, Public } = collectionSchemas(collection, () => null);
    properties[collection.name] = { type: 'array', items: components.place(Document) };
    for (const schema of [Insert, Update, ...(Public ? [Public] : [])]) components.place(schema);
    await ownTurn();
  }
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: project.name,
    type: 'object',
    properties,
    additionalProperties: false,
    $defs: Object.fromEntries(Object.entries(components.schemas).sort(([a], [b]) => (a < b ? -1 : 1))),
  };
}
