import type { Context } from 'koa';
import type { App } from '../../app.js';
import { receiveFile } from '../../http/requests/multipart.js';
import { readJson, requireObjectBody } from '../../http/requests/read-body.js';
import { createRouter, type RouteGroup } from '../../http/routes/mount-routes.js';
import { requireUserId } from '../access/access-rules.js';
import { callerOf, requireKey, requireSecretKey } from '../access/require-key.js';
import { confirmUpload } from './uploads/confirm-upload.js';
import { deleteAllFiles, deleteFile } from './delete-file.js';
import { providerOf } from './file.js';
import { choosePlace } from './file-places.js';
import { presentFile } from './present-file.js';
import { readPath, readUploadConfirmation, readUploadRequest } from './uploads/read-upload-input.js';
import { requestUpload } from './uploads/request-upload.js';
import { requireUploader } from './uploads/require-uploader.js';
import { uploadFile } from './uploads/upload-file.js';

const PREFIX = '/api/storage';

/** The end user who is signed in, or null. */
function userOf(ctx: Context): string | null {
  const { bearer } = callerOf(ctx);
  return bearer.state === 'user' ? bearer.userId : null;
}

/** Files of a project (rest-api.md 4.3; decisions.md 6). */
export function fileRoutes(app: App): RouteGroup {
  const router = createRouter(PREFIX);
  const uploader = requireUploader();
  const json = readJson();
  const serviceUrl = (ctx: Context): string => app.config.publicUrl ?? `${ctx.protocol}://${ctx.host}`;

  router.post('/upload', uploader, async (ctx) => {
    const { project } = callerOf(ctx);
    const isInternal = providerOf(choosePlace(app, project)) === 'internal';
    const rules = { field: 'file', maxBytes: isInternal ? app.config.maxFileBytes : null };
    const file = await receiveFile(ctx, rules, (incoming) => uploadFile(app, project, incoming, userOf(ctx)));
    ctx.status = 201;
    ctx.body = { message: 'File uploaded', ...(await presentFile(app, project, file, serviceUrl(ctx))) };
  });

  router.post('/upload-request', uploader, json, async (ctx) => {
    const input = readUploadRequest(requireObjectBody(ctx));
    ctx.body = await requestUpload(app, callerOf(ctx).project, input, {
      serviceUrl: serviceUrl(ctx),
      uploadedBy: userOf(ctx),
    });
  });

  router.post('/upload-confirm', uploader, json, async (ctx) => {
    const { project } = callerOf(ctx);
    const file = await confirmUpload(app, project, readUploadConfirmation(requireObjectBody(ctx)));
    ctx.body = { message: 'Upload confirmed', ...(await presentFile(app, project, file, serviceUrl(ctx))) };
  });

  router.delete('/file', uploader, json, async (ctx) => {
    const caller = callerOf(ctx);
    // Paths stand in public addresses, so knowing one is no right to it.
    const uploader = caller.key.type === 'secret' ? null : requireUserId(caller);
    await deleteFile(app, caller.project, readPath(requireObjectBody(ctx)), uploader);
    ctx.body = { success: true, data: {}, message: 'File deleted' };
  });

  router.delete('/all', requireSecretKey(), async (ctx) => {
    const deleted = await deleteAllFiles(app, callerOf(ctx).project);
    ctx.body = { success: true, data: { deleted }, message: 'All files deleted' };
  });

  return { prefix: PREFIX, router, guards: [requireKey(app)] };
}
