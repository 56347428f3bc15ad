import { presentBucket } from '../../../../src/features/files/bucket/project-bucket.js';
import type { Project } from '../../../../src/features/projects/project.js';
import type { Result } from '../../../view/output.js';

/** A project's own bucket, the secret masked. */
export function presentBucketResult(project: Project): Result {
  const bucket = presentBucket(project);
  return {
    json: bucket,
    quiet: bucket.bucket ?? '',
    text: (view) =>
      bucket.bucket === null
        ? 'No bucket of its own: files go to the service’s storage.'
        : view.table(
            ['setting', 'value'],
            [
              ['bucket', bucket.bucket],
              ['endpoint', bucket.endpoint ?? 'AWS'],
              ['region', bucket.region],
              ['access key id', bucket.accessKeyId],
              ['secret access key', bucket.secretAccessKey],
              ['public URL', bucket.publicUrl ?? 'none: replies carry no url'],
              ['path style', bucket.forcePathStyle ? 'yes' : 'no'],
            ],
          ),
  };
}
