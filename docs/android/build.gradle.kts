// AGP has Kotlin for Android itself; the version of the other plugin is that of both.
plugins {
    id("com.android.application") version "9.4.1" apply false
    kotlin("jvm") version "2.4.20" apply false
}
