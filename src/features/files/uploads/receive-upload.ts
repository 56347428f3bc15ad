import type { Context } from 'koa';
import type { App } from '../../../app.js';
import { receiveFile } from '../../../http/requests/multipart.js';
import type { Project } from '../../projects/project.js';
import { providerOf, type FileRecord } from '../file.js';
import { choosePlace } from '../file-places.js';
import type { SeenBy } from './new-file.js';
import { uploadFile } from './upload-file.js';

/** What an upload is refused with, besides outages. */
export const UPLOAD_REFUSALS = {
  400: ['FILE_MISSING', 'INVALID_BODY'],
  403: ['QUOTA_EXCEEDED'],
  404: ['FILE_NOT_FOUND'],
  413: ['FILE_TOO_LARGE'],
};

/**
 * Stores the one file of a form, of a size that its place allows; with the errors of receiveFile and uploadFile.
 * `seenBy` decides by the texts before the file whether it may be stored and who reads it.
 */
export function receiveUpload(
  app: App,
  ctx: Context,
  project: Project,
  uploadedBy: string | null,
  seenBy: (texts: ReadonlyMap<string, string>) => Promise<SeenBy>,
): Promise<FileRecord> {
  const isInternal = providerOf(choosePlace(app, project)) === 'internal';
  const maxBytes = isInternal ? app.config.maxFileBytes : null;
  const rules = { field: 'file', texts: ['attach', 'visibility'], maxBytes };
  return receiveFile(ctx, rules, async (incoming, texts) =>
    uploadFile(app, project, incoming, uploadedBy, await seenBy(texts)),
  );
}
