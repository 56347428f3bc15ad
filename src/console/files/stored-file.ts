import type { ApiSchemas } from '../api-routes.js';

/** A file as the operators' API lists it. */
export type StoredFile = ApiSchemas['StoredFile'];

const IMAGE = /^image\/(png|jpeg|gif|webp|avif|bmp)$/;
const TEXT = /^(text\/(?!html)[\w.+-]+|application\/(json|x-ndjson|xml|yaml|toml))$/;

const typeOf = ({ contentType }: StoredFile): string => contentType.split(';')[0]!.trim().toLowerCase();

export const isImage = (file: StoredFile): boolean => IMAGE.test(typeOf(file));
export const isText = (file: StoredFile): boolean => TEXT.test(typeOf(file));

/** Where the page may read the file: at the service itself. null for one elsewhere, which only a link leads to. */
export function previewAddress(url: string | null): string | null {
  return url !== null && URL.canParse(url) && new URL(url).origin === location.origin ? url : null;
}

/** The public address, for people: never one that runs something. */
export const publicAddress = ({ url }: StoredFile): string | null =>
  url !== null && /^https?:/.test(url) ? url : null;
