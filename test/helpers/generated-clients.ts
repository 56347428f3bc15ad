import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createClient } from '@hey-api/openapi-ts';
import openapiTS, { astToString, type OpenAPI3 } from 'openapi-typescript';
import type { ApiDocument } from '../../src/features/reference/api-document.js';
import { openTempDir } from './temp-dir.js';

/** The types that `openapi-typescript` makes of a document. */
export async function generateTypes(document: ApiDocument): Promise<string> {
  return astToString(await openapiTS(structuredClone(document) as unknown as OpenAPI3));
}

/** The client that `@hey-api/openapi-ts` makes of a document, by path below `folder`. */
export async function generateClient(document: ApiDocument, folder: string): Promise<Record<string, string>> {
  const output = await openTempDir();
  try {
    const input = structuredClone(document) as unknown as Record<string, unknown>;
    await createClient({ input, output: { path: output.path }, logs: { level: 'silent' } });
    const paths = readdirSync(output.path, { recursive: true, encoding: 'utf8' }).filter((path) =>
      path.endsWith('.ts'),
    );
    return Object.fromEntries(
      paths.map((path) => [`${folder}/${path}`, readFileSync(join(output.path, path), 'utf8')]),
    );
  } finally {
    await output.remove();
  }
}
