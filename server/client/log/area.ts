/** An area of the client, such as its keys or claims. All areas of a client share these three. */
import type { Http } from "../base/http.js";
import type { Authority } from "../base/session.js";
import type { Watch } from "./watch.js";

export abstract class Area {
  protected readonly http: Http;
  protected readonly watch: Watch;
  protected readonly auth: Authority;

  constructor(http: Http, watch: Watch, auth: Authority) {
    this.http = http;
    this.watch = watch;
    this.auth = auth;
  }
}
