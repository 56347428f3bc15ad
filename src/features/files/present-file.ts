import type { Project } from '../projects/project.js';
import type { App } from '../../app.js';
import { objectOf, providerOf, visibilityOf, type FileRecord, type Provider, type Visibility } from './file.js';
import { openPlace } from './file-places.js';

export interface PresentedFile {
  path: string;
  provider: Provider;
  url: string | null;
  warning?: string;
  /** Of files that have no public address on purpose. */
  visibility?: Exclude<Visibility, 'public'>;
}

const NO_URL = 'The bucket has no public URL configured, so the file cannot be read by an address.';

/** A file as replies show it (rest-api.md 2.7); with a warning when it has no public address. */
export async function presentFile(
  app: App,
  project: Project,
  file: FileRecord,
  serviceUrl: string,
): Promise<PresentedFile> {
  const visibility = visibilityOf(file);
  if (visibility !== 'public') return { path: file.path, provider: providerOf(file.place), url: null, visibility };
  const store = await openPlace(app, project, file);
  const url = store?.publicUrl(store.kind === 's3' ? objectOf(file) : file.path, serviceUrl) ?? null;
  return { path: file.path, provider: providerOf(file.place), url, ...(url === null && { warning: NO_URL }) };
}
